// Adam (Kingma and Ba, 2015) over a range of the parameters.
#ifndef DEJA_EXAMPLES_DIGITS_MODEL_OPTIMIZER_H_
#define DEJA_EXAMPLES_DIGITS_MODEL_OPTIMIZER_H_

#include <cstddef>

#include "deja.hpp"
#include "device.h"

namespace digits {

class Adam {
 public:
  Adam(Device& device, size_t parameters)
      : device_(device), mean_(device, parameters), square_(device, parameters) {}

  void Update(float learning_rate, const float* gradients, float* parameters);

 private:
  Device& device_;
  Array<float> mean_;
  Array<float> square_;
  int updates_ = 0;
  deja::Registered registered_[3] = {mean_.Register("adam mean"), square_.Register("adam square"),
                                     deja::Registered::State("adam updates", updates_)};
};

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_MODEL_OPTIMIZER_H_

// Adam (Kingma and Ba, 2015) over a range of the parameters.
#ifndef DEJA_EXAMPLES_DIGITS_OPTIMIZER_H_
#define DEJA_EXAMPLES_DIGITS_OPTIMIZER_H_

#include <cstddef>
#include <vector>

#include "deja.hpp"

namespace digits {

class Adam {
 public:
  explicit Adam(size_t parameters) : mean_(parameters), square_(parameters) {}

  void Update(float learning_rate, const float* gradients, float* parameters);

 private:
  std::vector<float> mean_;
  std::vector<float> square_;
  int updates_ = 0;
  deja::Registered registered_[3] = {deja::Registered::Tensor("adam mean", mean_),
                                     deja::Registered::Tensor("adam square", square_),
                                     deja::Registered::State("adam updates", updates_)};
};

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_OPTIMIZER_H_

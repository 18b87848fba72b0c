// Adam (Kingma and Ba, 2015) over a range of the parameters.
#ifndef DEJA_EXAMPLES_DIGITS_OPTIMIZER_H_
#define DEJA_EXAMPLES_DIGITS_OPTIMIZER_H_

#include <cstddef>
#include <vector>

namespace digits {

class Adam {
 public:
  explicit Adam(size_t parameters) : mean_(parameters), square_(parameters) {}

  void Update(float learning_rate, const float* gradients, float* parameters);

 private:
  std::vector<float> mean_;
  std::vector<float> square_;
  int updates_ = 0;
};

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_OPTIMIZER_H_

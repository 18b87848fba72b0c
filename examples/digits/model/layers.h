// The layers of the network. They hold no weights: these lie in one array for all layers, so that
// gradients can be handed to a collective without copying.
//
// These are the ones that this processor computes, in host memory; a Device has its own.
//
// All arrays are row-major with the sample first; images have their channels last. One thread uses
// a layer at a time.
#ifndef DEJA_EXAMPLES_DIGITS_MODEL_LAYERS_H_
#define DEJA_EXAMPLES_DIGITS_MODEL_LAYERS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "../rng.h"

namespace digits {

class Layer {
 public:
  Layer(const char* name, size_t inputs, size_t outputs)
      : name_(name), inputs_(inputs), outputs_(outputs) {}
  virtual ~Layer() = default;

  const char* name() const { return name_; }
  size_t inputs() const { return inputs_; }    // floats a sample
  size_t outputs() const { return outputs_; }  // floats a sample

  // Rows and columns of the weights; the biases, one a column, follow them. 0 where there are none.
  virtual size_t weight_rows() const { return 0; }
  virtual size_t weight_columns() const { return 0; }
  size_t parameters() const { return (weight_rows() + 1) * weight_columns(); }

  // `random` is null when testing.
  virtual void Forward(size_t batch, const float* parameters, const float* in, float* out,
                       Rng* random) = 0;

  // Adds to `gradient`. Overwrites `out_gradient`. `in_gradient` is null when nobody needs it.
  virtual void Backward(size_t batch, const float* parameters, const float* in, const float* out,
                        float* out_gradient, float* gradient, float* in_gradient) = 0;

 private:
  const char* name_;
  size_t inputs_;
  size_t outputs_;
};

enum class Activation { kNone, kRelu };

std::unique_ptr<Layer> MakeDense(const char* name, size_t inputs, size_t outputs,
                                 Activation activation);

// 3x3, the border padded with zeros, then ReLU. Images of side x side pixels.
std::unique_ptr<Layer> MakeConvolution(const char* name, size_t side, size_t in_channels,
                                       size_t out_channels);

// The maximum of each 2x2 block. `side` is that of the input.
std::unique_ptr<Layer> MakeMaxPool(const char* name, size_t side, size_t channels);

// What comes in must be the output of a ReLU, pooled or not: see the backward pass.
std::unique_ptr<Layer> MakeDropout(const char* name, size_t inputs, float probability);

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_MODEL_LAYERS_H_

// The network: which layers there are, and the forward and backward pass through them.
#ifndef DEJA_EXAMPLES_DIGITS_MODEL_NETWORK_H_
#define DEJA_EXAMPLES_DIGITS_MODEL_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "../rng.h"
#include "device.h"
#include "layers.h"

namespace digits {

// What one pass leaves for the way back. A pipeline has several under way.
struct Tape {
  size_t batch = 0;
  std::vector<Array<float>> values;  // [0] is the input, [i + 1] what layer i gave

  Array<float>& input() { return values.front(); }
  const Array<float>& output() const { return values.back(); }
};

class Network {
 public:
  Network(Device& device, std::vector<std::unique_ptr<Layer>> layers);

  Device& device() const { return *device_; }

  size_t layers() const { return layers_.size(); }
  const Layer& layer(size_t i) const { return *layers_[i]; }
  size_t inputs() const { return layers_.front()->inputs(); }
  size_t outputs() const { return layers_.back()->outputs(); }

  // Layer i's parameters are at offset(i) … offset(i + 1).
  size_t offset(size_t i) const { return offsets_[i]; }
  size_t parameters() const { return offsets_.back(); }

  // He's initialisation; biases are zero. In host memory.
  void Initialize(Rng* random, float* parameters) const;

  Tape MakeTape(size_t batch) const;

  // From tape->input() to tape->output().
  void Forward(const float* parameters, Tape* tape, Rng* dropout);

  // `out_gradient` (batch x outputs) is overwritten. Adds to `gradients`, last layer first, and
  // calls `layer_done(i)` once layer i's part is complete. Returns the gradient of the input when
  // that is wanted; it is valid until the next call.
  const float* Backward(const float* parameters, Tape* tape, float* out_gradient, float* gradients,
                        bool want_input_gradient, const std::function<void(size_t)>& layer_done);

 private:
  Device* device_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<size_t> offsets_;
  Array<float> scratch_[2];  // the gradients between two layers
};

// The first half of a pipeline, the second, or both.
enum class Part { kFront, kBack, kWhole };
Network BuildNetwork(Device& device, Part part);

struct LossSum {
  float loss = 0;
  int correct = 0;
};

// Of what Device::Loss has left for `batch` samples, in host memory.
LossSum SumOfLosses(const float* terms, size_t batch);

// FNV-1a over the bytes: equal if, and practically only if, all bits are.
uint64_t HashWeights(const std::vector<float>& weights);

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_MODEL_NETWORK_H_

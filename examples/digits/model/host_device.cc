#include "host_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "../cuda/kernels.h"

namespace digits {
namespace {

class HostDevice final : public Device {
 public:
  bool is_host() const override { return true; }
  void Enter() const override {}

  void* Allocate(size_t bytes) override { return std::calloc(1, bytes); }
  void Free(void* memory) override { std::free(memory); }

  Stream stream() const override { return nullptr; }
  Stream NewStream() override { return nullptr; }
  Event NewEvent() override { return nullptr; }
  void Record(Event, Stream) override {}
  void Wait(Stream, Event) override {}

  void CopyIn(void* to, const void* from, size_t bytes) override { Copy(to, from, bytes); }
  void CopyOut(void* to, const void* from, size_t bytes) override { Copy(to, from, bytes); }
  void Copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }

  std::unique_ptr<Layer> MakeDense(const char* name, size_t inputs, size_t outputs,
                                   Activation activation) override {
    return digits::MakeDense(name, inputs, outputs, activation);
  }
  std::unique_ptr<Layer> MakeConvolution(const char* name, size_t side, size_t in_channels,
                                         size_t out_channels) override {
    return digits::MakeConvolution(name, side, in_channels, out_channels);
  }
  std::unique_ptr<Layer> MakeMaxPool(const char* name, size_t side, size_t channels) override {
    return digits::MakeMaxPool(name, side, channels);
  }
  std::unique_ptr<Layer> MakeDropout(const char* name, size_t inputs, float probability) override {
    return digits::MakeDropout(name, inputs, probability);
  }

  void Loss(size_t batch, const float* logits, const int32_t* labels, const float* weights,
            float scale, float* gradient, float* terms) override {
    kernels::RunAll(kernels::Loss{logits, labels, weights, gradient, terms, scale,
                                  static_cast<uint32_t>(batch)});
  }
  void Update(const AdamStep& step) override {
    kernels::RunAll(kernels::Adam{step.gradients, step.mean, step.square, step.parameters,
                                  step.learning_rate, step.mean_scale, step.square_scale,
                                  static_cast<uint32_t>(step.count)});
  }
  void Zero(float* values, size_t count) override { std::fill(values, values + count, 0.0f); }
  void Add(const float* from, float* to, size_t count) override {
    kernels::RunAll(kernels::Add{from, to, static_cast<uint32_t>(count)});
  }
  void FlipBits(float* value, uint32_t bits, Stream) override {
    uint32_t word;
    std::memcpy(&word, value, sizeof word);
    word ^= bits;
    std::memcpy(value, &word, sizeof word);
  }
};

}  // namespace

std::unique_ptr<Device> MakeHostDevice() {
  return std::make_unique<HostDevice>();
}

}  // namespace digits

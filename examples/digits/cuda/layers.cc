// The layers of layers.h on a GPU: what they compute is in kernels.h.
#include "../model/layers.h"

#include "cuda_device.h"

namespace digits {
namespace {

// A dense layer too: a convolution of one pixel.
class Patches final : public Layer {
 public:
  Patches(CudaDevice& device, const char* name, const kernels::Shape& shape, bool relu)
      : Layer(name, static_cast<size_t>(shape.pixels()) * static_cast<size_t>(shape.channels),
              static_cast<size_t>(shape.pixels()) * static_cast<size_t>(shape.outputs)),
        device_(device),
        shape_(shape),
        relu_(relu) {}

  size_t weight_rows() const override { return static_cast<size_t>(shape_.patch()); }
  size_t weight_columns() const override { return static_cast<size_t>(shape_.outputs); }

  void Forward(size_t batch, const float* parameters, const float* in, float* out, Rng*) override {
    device_.Run(kernels::Forward{in, parameters, out, shape_, relu_ ? 1 : 0,
                                 static_cast<uint32_t>(batch * outputs())});
  }

  void Backward(size_t batch, const float* parameters, const float* in, const float* out,
                float* out_gradient, float* gradient, float* in_gradient) override {
    if (relu_) {
      device_.Run(
          kernels::ReluGradient{out, out_gradient, static_cast<uint32_t>(batch * this->outputs())});
    }
    device_.Run(kernels::WeightGradient{in, out_gradient, gradient, shape_,
                                        static_cast<int32_t>(batch),
                                        static_cast<uint32_t>(this->parameters())});
    if (!in_gradient) return;
    device_.Run(kernels::InputGradient{out_gradient, parameters, in_gradient, shape_,
                                       static_cast<uint32_t>(batch * inputs())});
  }

 private:
  CudaDevice& device_;
  const kernels::Shape shape_;
  const bool relu_;
};

class DeviceMaxPool final : public Layer {
 public:
  DeviceMaxPool(CudaDevice& device, const char* name, size_t side, size_t channels)
      : Layer(name, side * side * channels, side * side * channels / 4),
        device_(device),
        side_(static_cast<uint32_t>(side)),
        channels_(static_cast<uint32_t>(channels)) {}

  void Forward(size_t batch, const float*, const float* in, float* out, Rng*) override {
    device_.Run(
        kernels::MaxPool{in, out, side_, channels_, static_cast<uint32_t>(batch * outputs())});
  }

  void Backward(size_t batch, const float*, const float* in, const float* out, float* out_gradient,
                float*, float* in_gradient) override {
    if (!in_gradient) return;
    device_.Run(kernels::MaxPoolGradient{in, out, out_gradient, in_gradient, side_, channels_,
                                         static_cast<uint32_t>(batch * outputs())});
  }

 private:
  CudaDevice& device_;
  const uint32_t side_;
  const uint32_t channels_;
};

// What is dropped is drawn by the host, from the generator that a checkpoint holds.
class DeviceDropout final : public Layer {
 public:
  DeviceDropout(CudaDevice& device, const char* name, size_t inputs, float probability)
      : Layer(name, inputs, inputs),
        device_(device),
        probability_(probability),
        scale_(1 / (1 - probability)) {}

  void Forward(size_t batch, const float*, const float* in, float* out, Rng* random) override {
    const size_t count = batch * inputs();
    const uint8_t* keep = nullptr;
    if (random) {
      drawn_.resize(count);
      for (uint8_t& one : drawn_) one = random->Uniform() > probability_ ? 1 : 0;
      if (keep_.size() < count) keep_ = Array<uint8_t>(device_, count);
      keep_.Set(drawn_);
      keep = keep_.data();
    }
    device_.Run(
        kernels::Dropout{in, keep, out, random ? scale_ : 1.0f, static_cast<uint32_t>(count)});
  }

  void Backward(size_t batch, const float*, const float*, const float* out, float* out_gradient,
                float*, float* in_gradient) override {
    if (!in_gradient) return;
    device_.Run(kernels::DropoutGradient{out, out_gradient, in_gradient, scale_,
                                         static_cast<uint32_t>(batch * inputs())});
  }

 private:
  CudaDevice& device_;
  const float probability_;
  const float scale_;
  std::vector<uint8_t> drawn_;
  Array<uint8_t> keep_;
};

}  // namespace

std::unique_ptr<Layer> CudaDevice::MakeDense(const char* name, size_t inputs, size_t outputs,
                                             Activation activation) {
  const kernels::Shape shape{1, 0, static_cast<int32_t>(inputs), static_cast<int32_t>(outputs)};
  return std::make_unique<Patches>(*this, name, shape, activation == Activation::kRelu);
}

std::unique_ptr<Layer> CudaDevice::MakeConvolution(const char* name, size_t side,
                                                   size_t in_channels, size_t out_channels) {
  const kernels::Shape shape{static_cast<int32_t>(side), 1, static_cast<int32_t>(in_channels),
                             static_cast<int32_t>(out_channels)};
  return std::make_unique<Patches>(*this, name, shape, true);
}

std::unique_ptr<Layer> CudaDevice::MakeMaxPool(const char* name, size_t side, size_t channels) {
  return std::make_unique<DeviceMaxPool>(*this, name, side, channels);
}

std::unique_ptr<Layer> CudaDevice::MakeDropout(const char* name, size_t inputs, float probability) {
  return std::make_unique<DeviceDropout>(*this, name, inputs, probability);
}

}  // namespace digits

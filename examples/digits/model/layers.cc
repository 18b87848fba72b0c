#include "layers.h"

#include <algorithm>

#include "../cuda/kernels.h"
#include "matmul.h"

namespace digits {
namespace {

void Relu(size_t count, float* values) {
  for (size_t i = 0; i < count; ++i) values[i] = values[i] > 0 ? values[i] : 0.0f;
}

void ReluGradient(size_t count, const float* out, float* gradient) {
  kernels::RunAll(kernels::ReluGradient{out, gradient, static_cast<uint32_t>(count)});
}

// out (rows x columns) = bias in every row.
void SpreadBias(size_t rows, size_t columns, const float* bias, float* out) {
  for (size_t row = 0; row < rows; ++row) std::copy(bias, bias + columns, out + row * columns);
}

void AddBiasGradient(size_t rows, size_t columns, const float* out_gradient, float* gradient) {
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < columns; ++i) gradient[i] += out_gradient[row * columns + i];
  }
}

void Transpose(size_t rows, size_t columns, const float* from, std::vector<float>* to) {
  to->resize(rows * columns);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) (*to)[j * rows + i] = from[i * columns + j];
  }
}

class Dense final : public Layer {
 public:
  Dense(const char* name, size_t inputs, size_t outputs, Activation activation)
      : Layer(name, inputs, outputs), activation_(activation) {}

  size_t weight_rows() const override { return inputs(); }
  size_t weight_columns() const override { return outputs(); }

  void Forward(size_t batch, const float* parameters, const float* in, float* out, Rng*) override {
    SpreadBias(batch, outputs(), parameters + inputs() * outputs(), out);
    MatMulAdd(batch, outputs(), inputs(), in, inputs(), 1, parameters, out);
    if (activation_ == Activation::kRelu) Relu(batch * outputs(), out);
  }

  void Backward(size_t batch, const float* parameters, const float* in, const float* out,
                float* out_gradient, float* gradient, float* in_gradient) override {
    if (activation_ == Activation::kRelu) ReluGradient(batch * outputs(), out, out_gradient);
    MatMulAdd(inputs(), outputs(), batch, in, 1, inputs(), out_gradient, gradient);
    AddBiasGradient(batch, outputs(), out_gradient, gradient + inputs() * outputs());
    if (!in_gradient) return;
    Transpose(inputs(), outputs(), parameters, &transposed_);
    std::fill(in_gradient, in_gradient + batch * inputs(), 0.0f);
    MatMulAdd(batch, inputs(), outputs(), out_gradient, outputs(), 1, transposed_.data(),
              in_gradient);
  }

 private:
  const Activation activation_;
  std::vector<float> transposed_;
};

// A convolution is a dense layer over patches: row p of `patches_` holds the 3x3 pixels around
// pixel p.
class Convolution final : public Layer {
 public:
  Convolution(const char* name, size_t side, size_t in_channels, size_t out_channels)
      : Layer(name, side * side * in_channels, side * side * out_channels),
        side_(side),
        in_channels_(in_channels),
        out_channels_(out_channels),
        patch_(9 * in_channels),
        patches_(side * side * patch_),
        patch_gradients_(side * side * patch_) {}

  size_t weight_rows() const override { return patch_; }
  size_t weight_columns() const override { return out_channels_; }

  void Forward(size_t batch, const float* parameters, const float* in, float* out, Rng*) override {
    const size_t pixels = side_ * side_;
    for (size_t sample = 0; sample < batch; ++sample, in += inputs(), out += outputs()) {
      GatherPatches(in);
      SpreadBias(pixels, out_channels_, parameters + patch_ * out_channels_, out);
      MatMulAdd(pixels, out_channels_, patch_, patches_.data(), patch_, 1, parameters, out);
      Relu(outputs(), out);
    }
  }

  void Backward(size_t batch, const float* parameters, const float* in, const float* out,
                float* out_gradient, float* gradient, float* in_gradient) override {
    const size_t pixels = side_ * side_;
    if (in_gradient) Transpose(patch_, out_channels_, parameters, &transposed_);
    ReluGradient(batch * outputs(), out, out_gradient);
    for (size_t sample = 0; sample < batch; ++sample, in += inputs(), out_gradient += outputs()) {
      GatherPatches(in);
      MatMulAdd(patch_, out_channels_, pixels, patches_.data(), 1, patch_, out_gradient, gradient);
      AddBiasGradient(pixels, out_channels_, out_gradient, gradient + patch_ * out_channels_);
      if (!in_gradient) continue;
      std::fill(patch_gradients_.begin(), patch_gradients_.end(), 0.0f);
      MatMulAdd(pixels, patch_, out_channels_, out_gradient, out_channels_, 1, transposed_.data(),
                patch_gradients_.data());
      ScatterPatches(in_gradient + sample * inputs());
    }
  }

 private:
  // Calls visit(offset in the image, offset in the patches) for every pixel of every patch that is
  // not padding.
  template <class Visit>
  void ForEachPixel(Visit visit) const {
    const int side = static_cast<int>(side_);
    size_t at = 0;
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        for (int dy = -1; dy <= 1; ++dy) {
          for (int dx = -1; dx <= 1; ++dx, at += in_channels_) {
            if (y + dy < 0 || y + dy >= side || x + dx < 0 || x + dx >= side) continue;
            visit(static_cast<size_t>((y + dy) * side + x + dx) * in_channels_, at);
          }
        }
      }
    }
  }

  void GatherPatches(const float* image) {
    ForEachPixel([&](size_t pixel, size_t at) {
      std::copy(image + pixel, image + pixel + in_channels_, &patches_[at]);
    });
  }

  void ScatterPatches(float* image) const {
    std::fill(image, image + inputs(), 0.0f);
    ForEachPixel([&](size_t pixel, size_t at) {
      for (size_t channel = 0; channel < in_channels_; ++channel) {
        image[pixel + channel] += patch_gradients_[at + channel];
      }
    });
  }

  const size_t side_;
  const size_t in_channels_;
  const size_t out_channels_;
  const size_t patch_;
  std::vector<float> patches_;  // what is padding stays zero
  std::vector<float> patch_gradients_;
  std::vector<float> transposed_;
};

class MaxPool final : public Layer {
 public:
  MaxPool(const char* name, size_t side, size_t channels)
      : Layer(name, side * side * channels, side * side * channels / 4),
        side_(side),
        channels_(channels) {}

  void Forward(size_t batch, const float*, const float* in, float* out, Rng*) override {
    ForEachBlock(batch, [&](size_t to, const size_t(&from)[4]) {
      out[to] = std::max(std::max(in[from[0]], in[from[1]]), std::max(in[from[2]], in[from[3]]));
    });
  }

  void Backward(size_t batch, const float*, const float* in, const float* out, float* out_gradient,
                float*, float* in_gradient) override {
    if (!in_gradient) return;
    std::fill(in_gradient, in_gradient + batch * inputs(), 0.0f);
    ForEachBlock(batch, [&](size_t to, const size_t(&from)[4]) {
      for (const size_t candidate : from) {
        if (in[candidate] != out[to]) continue;
        in_gradient[candidate] = out_gradient[to];
        break;
      }
    });
  }

 private:
  template <class Visit>
  void ForEachBlock(size_t batch, Visit visit) const {
    const size_t row = side_ * channels_;
    size_t to = 0;
    for (size_t y = 0; y < batch * side_; y += 2) {
      for (size_t x = 0; x < side_; x += 2) {
        for (size_t channel = 0; channel < channels_; ++channel, ++to) {
          const size_t corner = y * row + x * channels_ + channel;
          const size_t from[4] = {corner, corner + channels_, corner + row,
                                  corner + row + channels_};
          visit(to, from);
        }
      }
    }
  }

  const size_t side_;
  const size_t channels_;
};

class Dropout final : public Layer {
 public:
  Dropout(const char* name, size_t inputs, float probability)
      : Layer(name, inputs, inputs), probability_(probability), scale_(1 / (1 - probability)) {}

  void Forward(size_t batch, const float*, const float* in, float* out, Rng* random) override {
    for (size_t i = 0; i < batch * inputs(); ++i) {
      const bool keep = !random || random->Uniform() > probability_;
      out[i] = keep ? in[i] * (random ? scale_ : 1.0f) : 0.0f;
    }
  }

  void Backward(size_t batch, const float*, const float*, const float* out, float* out_gradient,
                float*, float* in_gradient) override {
    if (!in_gradient) return;
    kernels::RunAll(kernels::DropoutGradient{out, out_gradient, in_gradient, scale_,
                                             static_cast<uint32_t>(batch * inputs())});
  }

 private:
  const float probability_;
  const float scale_;
};

}  // namespace

std::unique_ptr<Layer> MakeDense(const char* name, size_t inputs, size_t outputs,
                                 Activation activation) {
  return std::make_unique<Dense>(name, inputs, outputs, activation);
}

std::unique_ptr<Layer> MakeConvolution(const char* name, size_t side, size_t in_channels,
                                       size_t out_channels) {
  return std::make_unique<Convolution>(name, side, in_channels, out_channels);
}

std::unique_ptr<Layer> MakeMaxPool(const char* name, size_t side, size_t channels) {
  return std::make_unique<MaxPool>(name, side, channels);
}

std::unique_ptr<Layer> MakeDropout(const char* name, size_t inputs, float probability) {
  return std::make_unique<Dropout>(name, inputs, probability);
}

}  // namespace digits

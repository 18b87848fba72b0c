// What the kernels compute, element by element: the same source for GPUs (kernels.cu) and for the
// processor.
//
// A kernel is the parameters of a launch and what is done for element i of `count`. One thread
// computes an element from beginning to end, with sums in the order of layers.cc. There are no
// atomics, and equal inputs give equal bits, on the processor those of layers.cc. The host path
// computes with those of them that go from element to element. It has loops of its own for matrices
// and images (layers.cc, matmul.cc). They keep a row in registers where a GPU has a thread an
// element.
//
// Plain types: the layout is that of the host. Addresses are the first members, kPointers of them.
#ifndef DEJA_EXAMPLES_DIGITS_CUDA_KERNELS_H_
#define DEJA_EXAMPLES_DIGITS_CUDA_KERNELS_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__CUDA__) || defined(__CUDACC__)
#define DIGITS_GPU __attribute__((device)) inline
#else
#include <cmath>
#define DIGITS_GPU inline
#endif

namespace digits::kernels {

#if defined(__NVCC__)
DIGITS_GPU float Exp(float x) {
  return __expf(x);
}
DIGITS_GPU float Log(float x) {
  return __logf(x);
}
DIGITS_GPU float Sqrt(float x) {
  return __fsqrt_rn(x);
}
#elif defined(__CUDA__)
DIGITS_GPU float Exp(float x) {
  return __nvvm_ex2_approx_f(x * 1.44269504f);
}
DIGITS_GPU float Log(float x) {
  return __nvvm_lg2_approx_f(x) * 0.693147181f;
}
DIGITS_GPU float Sqrt(float x) {
  return __nvvm_sqrt_rn_f(x);
}
#else
inline float Exp(float x) {
  return std::exp(x);
}
inline float Log(float x) {
  return std::log(x);
}
inline float Sqrt(float x) {
  return std::sqrt(x);
}
#endif

// Images of side x side pixels, channels last, as a convolution with patches of 2 * reach + 1
// pixels squared sees them. A dense layer is one of a single pixel: side 1, reach 0.
struct Shape {
  int32_t side;
  int32_t reach;
  int32_t channels;
  int32_t outputs;

  DIGITS_GPU int32_t pixels() const { return side * side; }
  DIGITS_GPU int32_t patch() const { return (2 * reach + 1) * (2 * reach + 1) * channels; }
  DIGITS_GPU bool Contains(int32_t y, int32_t x) const {
    return y >= 0 && y < side && x >= 0 && x < side;
  }
};

// out = the patches times the weights, plus the biases, which follow the weights.
struct Forward {
  static constexpr uint32_t kPointers = 3;
  const float* in;
  const float* parameters;
  float* out;
  Shape shape;
  int32_t relu;
  uint32_t count;

  DIGITS_GPU void operator()(uint32_t i) const {
    const int32_t row = static_cast<int32_t>(i) / shape.outputs;
    const int32_t column = static_cast<int32_t>(i) % shape.outputs;
    const int32_t pixel = row % shape.pixels();
    const float* image = in + static_cast<ptrdiff_t>(row - pixel) * shape.channels;
    const float* weight = parameters + column;
    float sum = weight[static_cast<ptrdiff_t>(shape.patch()) * shape.outputs];
    for (int32_t dy = -shape.reach; dy <= shape.reach; ++dy) {
      for (int32_t dx = -shape.reach; dx <= shape.reach; ++dx) {
        const int32_t y = pixel / shape.side + dy;
        const int32_t x = pixel % shape.side + dx;
        const bool inside = shape.Contains(y, x);
        const float* from = inside ? image + (y * shape.side + x) * shape.channels : nullptr;
        for (int32_t channel = 0; channel < shape.channels; ++channel, weight += shape.outputs)
          sum += (inside ? from[channel] : 0.0f) * *weight;
      }
    }
    out[i] = relu != 0 && !(sum > 0) ? 0.0f : sum;
  }
};

// Adds to the gradients of weights and biases, all samples one after the other.
struct WeightGradient {
  static constexpr uint32_t kPointers = 3;
  const float* in;
  const float* out_gradient;
  float* gradient;
  Shape shape;
  int32_t batch;
  uint32_t count;

  DIGITS_GPU void operator()(uint32_t i) const {
    const int32_t at = static_cast<int32_t>(i) / shape.outputs;  // in the patch; its end: the bias
    const bool bias = at == shape.patch();
    const int32_t width = 2 * shape.reach + 1;
    const int32_t dy = at / shape.channels / width - shape.reach;
    const int32_t dx = at / shape.channels % width - shape.reach;
    const float* from = in + at % shape.channels;
    const float* factor = out_gradient + i % static_cast<uint32_t>(shape.outputs);
    float sum = gradient[i];
    for (int32_t sample = 0; sample < batch; ++sample) {
      for (int32_t y = 0; y < shape.side; ++y) {
        for (int32_t x = 0; x < shape.side; ++x, factor += shape.outputs) {
          float value = 1;
          if (!bias) {
            const bool inside = shape.Contains(y + dy, x + dx);
            value = inside ? from[((y + dy) * shape.side + x + dx) * shape.channels] : 0.0f;
          }
          sum += value * *factor;
        }
      }
      from += shape.pixels() * shape.channels;
    }
    gradient[i] = sum;
  }
};

// What each pixel gets from the patches that it is in, the first patch first.
struct InputGradient {
  static constexpr uint32_t kPointers = 3;
  const float* out_gradient;
  const float* parameters;
  float* in_gradient;
  Shape shape;
  uint32_t count;

  DIGITS_GPU void operator()(uint32_t i) const {
    const int32_t row = static_cast<int32_t>(i) / shape.channels;
    const int32_t channel = static_cast<int32_t>(i) % shape.channels;
    const int32_t pixel = row % shape.pixels();
    const int32_t width = 2 * shape.reach + 1;
    float sum = 0;
    for (int32_t d = width * width; d-- > 0;) {
      const int32_t y = pixel / shape.side - (d / width - shape.reach);
      const int32_t x = pixel % shape.side - (d % width - shape.reach);
      if (!shape.Contains(y, x)) continue;
      const float* gradient =
          out_gradient + static_cast<ptrdiff_t>(row - pixel + y * shape.side + x) * shape.outputs;
      const float* weight =
          parameters + static_cast<ptrdiff_t>(d * shape.channels + channel) * shape.outputs;
      float part = 0;
      for (int32_t j = 0; j < shape.outputs; ++j) part += gradient[j] * weight[j];
      sum += part;
    }
    in_gradient[i] = sum;
  }
};

struct ReluGradient {
  static constexpr uint32_t kPointers = 2;
  const float* out;
  float* gradient;
  uint32_t count;

  DIGITS_GPU void operator()(uint32_t i) const { gradient[i] = out[i] > 0 ? gradient[i] : 0.0f; }
};

DIGITS_GPU float Larger(float a, float b) {
  return a < b ? b : a;
}

// The four pixels of block i, of which each channel's largest goes on.
struct Block {
  DIGITS_GPU Block(uint32_t i, uint32_t side, uint32_t channels) {
    const uint32_t channel = i % channels;
    const uint32_t x = i / channels % (side / 2) * 2;
    const uint32_t y = i / channels / (side / 2) * 2;  // over all images
    from[0] = (y * side + x) * channels + channel;
    from[1] = from[0] + channels;
    from[2] = from[0] + side * channels;
    from[3] = from[2] + channels;
  }
  uint32_t from[4];
};

struct MaxPool {
  static constexpr uint32_t kPointers = 2;
  const float* in;
  float* out;
  uint32_t side;
  uint32_t channels;
  uint32_t count;

  DIGITS_GPU void operator()(uint32_t i) const {
    const Block block(i, side, channels);
    out[i] = Larger(Larger(in[block.from[0]], in[block.from[1]]),
                    Larger(in[block.from[2]], in[block.from[3]]));
  }
};

struct MaxPoolGradient {
  static constexpr uint32_t kPointers = 4;
  const float* in;
  const float* out;
  const float* out_gradient;
  float* in_gradient;
  uint32_t side;
  uint32_t channels;
  uint32_t count;

  DIGITS_GPU void operator()(uint32_t i) const {
    const Block block(i, side, channels);
    bool found = false;
    for (const uint32_t pixel : block.from) {
      const bool largest = !found && in[pixel] == out[i];
      in_gradient[pixel] = largest ? out_gradient[i] : 0.0f;
      found = found || largest;
    }
  }
};

// `keep` (null: all) says what is not dropped.
struct Dropout {
  static constexpr uint32_t kPointers = 3;
  const float* in;
  const uint8_t* keep;
  float* out;
  float scale;
  uint32_t count;

  DIGITS_GPU void operator()(uint32_t i) const {
    out[i] = keep == nullptr || keep[i] != 0 ? in[i] * scale : 0.0f;
  }
};

// What was dropped came out as zero. So did what went in as zero, but the ReLU it came from passes
// no gradient on for it anyway.
struct DropoutGradient {
  static constexpr uint32_t kPointers = 3;
  const float* out;
  const float* out_gradient;
  float* in_gradient;
  float scale;
  uint32_t count;

  DIGITS_GPU void operator()(uint32_t i) const {
    in_gradient[i] = out[i] != 0 ? out_gradient[i] * scale : 0.0f;
  }
};

// For sample i: see Device::Loss.
struct Loss {
  static constexpr uint32_t kPointers = 5;
  static constexpr uint32_t kClasses = 10;
  const float* logits;
  const int32_t* labels;
  const float* weights;
  float* gradient;
  float* terms;
  float scale;
  uint32_t count;

  DIGITS_GPU void operator()(uint32_t i) const {
    const float* mine = logits + i * kClasses;
    const auto label = static_cast<uint32_t>(labels[i]);
    const float weight = weights != nullptr ? weights[i] : 1.0f;
    uint32_t best = 0;
    for (uint32_t j = 1; j < kClasses; ++j)
      if (mine[best] < mine[j]) best = j;
    float exponentials[kClasses];
    float total = 0;
    for (uint32_t j = 0; j < kClasses; ++j) total += exponentials[j] = Exp(mine[j] - mine[best]);
    terms[2 * i] = weight * (Log(total) - (mine[label] - mine[best]));
    terms[2 * i + 1] = best == label ? 1.0f : 0.0f;
    if (gradient == nullptr) return;
    for (uint32_t j = 0; j < kClasses; ++j)
      gradient[i * kClasses + j] =
          scale * weight * (exponentials[j] / total - (j == label ? 1.0f : 0.0f));
  }
};

inline constexpr float kMeanDecay = 0.9f;
inline constexpr float kSquareDecay = 0.999f;
inline constexpr float kEpsilon = 1e-8f;

// Kingma and Ba, 2015.
struct Adam {
  static constexpr uint32_t kPointers = 4;
  const float* gradients;
  float* mean;
  float* square;
  float* parameters;
  float learning_rate;
  float mean_scale;
  float square_scale;
  uint32_t count;

  DIGITS_GPU void operator()(uint32_t i) const {
    mean[i] = kMeanDecay * mean[i] + (1 - kMeanDecay) * gradients[i];
    square[i] = kSquareDecay * square[i] + (1 - kSquareDecay) * gradients[i] * gradients[i];
    parameters[i] -=
        learning_rate * mean[i] * mean_scale / (Sqrt(square[i] * square_scale) + kEpsilon);
  }
};

struct Zero {
  static constexpr uint32_t kPointers = 1;
  float* values;
  uint32_t count;

  DIGITS_GPU void operator()(uint32_t i) const { values[i] = 0; }
};

struct Add {
  static constexpr uint32_t kPointers = 2;
  const float* from;
  float* to;
  uint32_t count;

  DIGITS_GPU void operator()(uint32_t i) const { to[i] += from[i]; }
};

struct FlipBits {
  static constexpr uint32_t kPointers = 1;
  uint32_t* words;
  uint32_t bits;
  uint32_t count;

  DIGITS_GPU void operator()(uint32_t i) const { words[i] ^= bits; }
};

// X(what it is called on the GPU, its type)
#define DIGITS_KERNELS(X)                      \
  X(digits_forward, Forward)                   \
  X(digits_weight_gradient, WeightGradient)    \
  X(digits_input_gradient, InputGradient)      \
  X(digits_relu_gradient, ReluGradient)        \
  X(digits_max_pool, MaxPool)                  \
  X(digits_max_pool_gradient, MaxPoolGradient) \
  X(digits_dropout, Dropout)                   \
  X(digits_dropout_gradient, DropoutGradient)  \
  X(digits_loss, Loss)                         \
  X(digits_adam, Adam)                         \
  X(digits_zero, Zero)                         \
  X(digits_add, Add)                           \
  X(digits_flip_bits, FlipBits)

// All elements, one after the other. By value: what is stored cannot be a parameter then.
template <class Kernel>
inline void RunAll(Kernel kernel) {
  for (uint32_t i = 0; i < kernel.count; ++i) kernel(i);
}

}  // namespace digits::kernels

#endif  // DEJA_EXAMPLES_DIGITS_CUDA_KERNELS_H_

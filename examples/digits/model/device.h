// Where the network's numbers live, and what computes with them: this processor and its memory, or
// a GPU.
//
// What is put on a stream happens in that order, and on a GPU later than the call returns;
// addresses of arrays are the device's, and the host goes there by CopyIn and CopyOut only. In host
// memory all is done when a call returns, and there is one stream, the null one. A failure ends the
// process after saying which call failed.
#ifndef DEJA_EXAMPLES_DIGITS_MODEL_DEVICE_H_
#define DEJA_EXAMPLES_DIGITS_MODEL_DEVICE_H_

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../options.h"
#include "deja.hpp"
#include "layers.h"

struct CUevent_st;

namespace digits {

using Stream = cudaStream_t;
using Event = ::CUevent_st*;

// One step of Adam over `count` parameters.
struct AdamStep {
  const float* gradients;
  float* mean;
  float* square;
  float* parameters;
  size_t count;
  float learning_rate;
  float mean_scale;  // 1 / (1 - decay to the power of the updates so far)
  float square_scale;
};

// All methods may be called by several threads, each after Enter().
class Device {
 public:
  virtual ~Device() = default;

  virtual bool is_host() const = 0;
  // The calling thread is going to use this device. The thread that made it has done so.
  virtual void Enter() const = 0;

  // Memory of zeros.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* memory) = 0;

  // What the program computes is on stream(), in the order of the calls.
  virtual Stream stream() const = 0;
  virtual Stream NewStream() = 0;  // as long as the device
  virtual Event NewEvent() = 0;    // as long as the device
  // `event` is where `stream` is now.
  virtual void Record(Event event, Stream stream) = 0;
  // What is put on `stream` from now on comes after `event`.
  virtual void Wait(Stream stream, Event event) = 0;

  // From host memory, which may change when this returns.
  virtual void CopyIn(void* to, const void* from, size_t bytes) = 0;
  // Returns when the bytes are in host memory.
  virtual void CopyOut(void* to, const void* from, size_t bytes) = 0;
  virtual void Copy(void* to, const void* from, size_t bytes) = 0;

  virtual std::unique_ptr<Layer> MakeDense(const char* name, size_t inputs, size_t outputs,
                                           Activation activation) = 0;
  virtual std::unique_ptr<Layer> MakeConvolution(const char* name, size_t side, size_t in_channels,
                                                 size_t out_channels) = 0;
  virtual std::unique_ptr<Layer> MakeMaxPool(const char* name, size_t side, size_t channels) = 0;
  virtual std::unique_ptr<Layer> MakeDropout(const char* name, size_t inputs,
                                             float probability) = 0;

  // Softmax and cross-entropy. `weights` (one a sample; null: all 1) scale each sample's loss.
  // `terms` gets two numbers a sample: that loss, and 1 if the image was recognised. When
  // `gradient` (batch x classes) is not null, it becomes the gradient of the weighted losses' sum
  // times `scale`.
  virtual void Loss(size_t batch, const float* logits, const int32_t* labels, const float* weights,
                    float scale, float* gradient, float* terms) = 0;
  virtual void Update(const AdamStep& step) = 0;
  virtual void Zero(float* values, size_t count) = 0;
  virtual void Add(const float* from, float* to, size_t count) = 0;
  virtual void FlipBits(float* value, uint32_t bits, Stream stream) = 0;
};

// `rank` chooses among this machine's GPUs where the environment (LOCAL_RANK) does not.
std::unique_ptr<Device> MakeDevice(Processor processor, int rank);

// Numbers on a device, zero at first.
template <class T>
class Array {
 public:
  Array() = default;
  Array(Device& device, size_t size)
      : device_(&device),
        data_(size == 0 ? nullptr : static_cast<T*>(device.Allocate(size * sizeof(T)))),
        size_(size) {}
  ~Array() {
    if (data_) device_->Free(data_);
  }
  Array(Array&& other) noexcept
      : device_(other.device_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Array& operator=(Array&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }

  // Replaces the first `count`.
  void Set(const T* from, size_t count) { device_->CopyIn(data_, from, count * sizeof(T)); }
  void Set(const std::vector<T>& from) { Set(from.data(), from.size()); }
  std::vector<T> Get() const {
    std::vector<T> values(size_);
    device_->CopyOut(values.data(), data_, size_ * sizeof(T));
    return values;
  }
  // What is new is zero. Addresses change.
  void Grow(size_t size) {
    Array larger(*device_, size);
    device_->Copy(larger.data_, data_, size_ * sizeof(T));
    *this = std::move(larger);
  }

  // What a checkpoint of Deja holds, while neither moves: host memory where it lies, a device's by
  // way of the host.
  deja::Registered Register(std::string name) {
    if (device_->is_host())
      return deja::Registered::Tensor(std::move(name), data_, {static_cast<int64_t>(size_)});
    return deja::Registered::Object(std::move(name), *this);
  }
  void Save(deja_write_t write, void* sink) {
    const std::vector<T> values = Get();
    write(sink, values.data(), values.size() * sizeof(T));
  }
  bool Load(const void* data, size_t bytes) {
    if (bytes != size_ * sizeof(T)) return false;
    device_->CopyIn(data_, data, bytes);
    return true;
  }

 private:
  Device* device_ = nullptr;
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_MODEL_DEVICE_H_

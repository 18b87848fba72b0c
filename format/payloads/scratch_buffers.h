// Buffers that a read of a payload needs and gives back: a chunk as it is stored, and decoded.
//
// Fresh memory for each chunk would cost as much as decoding it, in page faults. The process keeps
// a few of them, at most kMost, of about two chunks each. Any thread; a fork at any time does no
// harm, since there is no lock.
#ifndef DEJA_FORMAT_PAYLOADS_SCRATCH_BUFFERS_H_
#define DEJA_FORMAT_PAYLOADS_SCRATCH_BUFFERS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace deja::format {

class ScratchBuffers {
 public:
  // Takes idle buffers, or makes some.
  ScratchBuffers() {
    for (std::atomic<Buffers*>& place : idle_) {
      buffers_.reset(place.exchange(nullptr, std::memory_order_acquire));
      if (buffers_ != nullptr) return;
    }
    buffers_ = std::make_unique<Buffers>();
  }
  // Leaves them to the next read, unless kMost are idle.
  ~ScratchBuffers() {
    Buffers* none = nullptr;
    for (std::atomic<Buffers*>& place : idle_) {
      none = nullptr;
      if (!place.compare_exchange_strong(none, buffers_.get(), std::memory_order_release)) continue;
      (void)buffers_.release();
      return;
    }
  }
  ScratchBuffers(const ScratchBuffers&) = delete;
  ScratchBuffers& operator=(const ScratchBuffers&) = delete;

  // Their contents are left over from another read.
  [[nodiscard]] std::vector<std::byte>& frame() { return buffers_->frame; }
  [[nodiscard]] std::vector<std::byte>& decoded() { return buffers_->decoded; }

 private:
  struct Buffers {
    std::vector<std::byte> frame;
    std::vector<std::byte> decoded;
  };
  static constexpr size_t kMost = 4;

  inline static std::array<std::atomic<Buffers*>, kMost> idle_{};

  std::unique_ptr<Buffers> buffers_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_PAYLOADS_SCRATCH_BUFFERS_H_

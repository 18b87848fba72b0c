// Blob: the bytes behind the pointers of one call, gathered on the stack.
#ifndef DEJA_RECORDER_EVENTS_BLOB_H_
#define DEJA_RECORDER_EVENTS_BLOB_H_

#include <cstddef>
#include <cstring>
#include <string_view>

namespace deja::recorder {

class Blob {
 public:
  // What does not fit is left out as a whole.
  void Add(const void* data, size_t bytes) {
    if (data == nullptr || bytes > sizeof bytes_ - size_) return;
    std::memcpy(bytes_ + size_, data, bytes);
    size_ += bytes;
  }
  [[nodiscard]] std::string_view view() const { return {bytes_, size_}; }

 private:
  size_t size_ = 0;
  char bytes_[8 << 10];
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_EVENTS_BLOB_H_

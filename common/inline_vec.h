// InlineVec<T, N>: a vector of at most N elements that lives where it is declared.
//
// For what the recorder builds on its hot path, where nothing may be allocated. Not thread-safe.
#ifndef DEJA_COMMON_INLINE_VEC_H_
#define DEJA_COMMON_INLINE_VEC_H_

#include <array>
#include <cstddef>
#include <initializer_list>

namespace deja {

template <typename T, size_t N>
class InlineVec {
 public:
  using value_type = T;
  static constexpr size_t kCapacity = N;

  InlineVec() = default;
  InlineVec(std::initializer_list<T> values) {
    for (const T& value : values) push_back(value);
  }

  // False, and nothing is added, when the vector is full.
  bool push_back(const T& value) {
    if (size_ == N) return false;
    items_[size_++] = value;
    return true;
  }
  void clear() { size_ = 0; }

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return items_[i]; }
  const T& operator[](size_t i) const { return items_[i]; }
  T* begin() { return items_.data(); }
  T* end() { return items_.data() + size_; }
  const T* begin() const { return items_.data(); }
  const T* end() const { return items_.data() + size_; }
  T& back() { return items_[size_ - 1]; }

 private:
  std::array<T, N> items_{};
  size_t size_ = 0;
};

}  // namespace deja

#endif  // DEJA_COMMON_INLINE_VEC_H_

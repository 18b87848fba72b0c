// InlineVec<T, N>: a vector of at most N elements that lives where it is declared.
//
// For the recorder's hot path, which may not allocate and should clear no more than it needs:
// unused elements are not initialised. Not thread-safe.
#ifndef DEJA_COMMON_INLINE_VEC_H_
#define DEJA_COMMON_INLINE_VEC_H_

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <new>
#include <type_traits>

namespace deja {

template <typename T, size_t N>
class InlineVec {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  static constexpr size_t kCapacity = N;

  InlineVec() {}  // not defaulted: that would clear the storage
  InlineVec(const InlineVec& other) { *this = other; }
  InlineVec(std::initializer_list<T> values) {
    for (const T& value : values) push_back(value);
  }

  InlineVec& operator=(const InlineVec& other) {
    if (this == &other) return *this;
    size_ = other.size_;
    std::copy_n(other.items_, size_, items_);
    return *this;
  }

  // False, and nothing is added, when the vector is full.
  bool push_back(const T& value) {
    if (size_ == N) return false;
    new (&items_[size_++]) T(value);
    return true;
  }
  void clear() { size_ = 0; }

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return items_[i]; }
  const T& operator[](size_t i) const { return items_[i]; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + size_; }
  T& back() { return items_[size_ - 1]; }

 private:
  union {
    T items_[N];
  };
  size_t size_ = 0;
};

}  // namespace deja

#endif  // DEJA_COMMON_INLINE_VEC_H_

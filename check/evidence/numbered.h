// Numbered: values by their number, from 1 on, in pieces that stay where they are.
//
// A list of many thousands that grows needs no second copy, and gives its memory back piece by
// piece while it is read. Owns the values; one thread.
#ifndef DEJA_CHECK_EVIDENCE_NUMBERED_H_
#define DEJA_CHECK_EVIDENCE_NUMBERED_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace deja::check {

template <typename T>
class Numbered {
 public:
  // The value of `number`, which is not 0; a new one if there is none.
  T& operator[](uint64_t number) {
    const uint64_t index = number - 1;
    const auto piece = static_cast<size_t>(index / kPiece);
    if (pieces_.size() <= piece) pieces_.resize(piece + 1);
    if (pieces_[piece] == nullptr) pieces_[piece] = std::make_unique<Piece>();
    return (*pieces_[piece])[static_cast<size_t>(index % kPiece)];
  }

  // Calls `take(T&)` for each value of the pieces that have one, by number.
  template <typename Take>
  void ForEach(const Take& take) {
    for (const auto& piece : pieces_)
      if (piece != nullptr) std::for_each(piece->begin(), piece->end(), take);
  }
  // The same, and forgets them.
  template <typename Take>
  void TakeEach(const Take& take) {
    for (auto& piece : pieces_) {
      if (piece != nullptr) std::for_each(piece->begin(), piece->end(), take);
      piece.reset();
    }
    pieces_.clear();
  }

 private:
  // Small, since programs make thousands of communicators with a few calls each.
  static constexpr size_t kPiece = std::max<size_t>(1, (size_t{8} << 10) / sizeof(T));
  using Piece = std::array<T, kPiece>;
  std::vector<std::unique_ptr<Piece>> pieces_;
};

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_NUMBERED_H_

// SeenPages: which pages of one file have been recorded, so that what a program reads again costs a
// look at a bit.
//
// A bit a page, in memory that costs nothing until it is touched; files of up to 64 pages need
// none. Lock-free; any thread. Memory is never given back: a file has one of these for good.
#ifndef DEJA_RECORDER_FILES_SEEN_PAGES_H_
#define DEJA_RECORDER_FILES_SEEN_PAGES_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "recorder/events/mapped_memory.h"

namespace deja::recorder {

class SeenPages {
 public:
  static constexpr uint64_t kPage = 4096;

  // Before anything else, once. Without memory everything is news.
  void SetSize(uint64_t file_size) {
    size_ = file_size;
    const uint64_t pages = (file_size + kPage - 1) / kPage;
    if (pages <= kBits) {
      words_ = &inline_word_;
      pages_ = pages;
      return;
    }
    words_ = static_cast<std::atomic<uint64_t>*>(MapZeroed((pages + kBits - 1) / kBits * 8));
    pages_ = words_ == nullptr ? 0 : pages;
  }

  // True if all pages that [begin, end) touches are marked. Not for nothing.
  [[nodiscard]] bool Covers(uint64_t begin, uint64_t end) const {
    const uint64_t last = (end - 1) / kPage;
    uint64_t page = begin / kPage;
    if (last >= pages_) return false;
    if (page == last)
      return (words_[page / kBits].load(std::memory_order_relaxed) >> page % kBits & 1) != 0;
    while (page <= last) {
      const uint64_t mask = Mask(page, last);
      const uint64_t word = words_[page / kBits].load(std::memory_order_relaxed);
      if ((word & mask) != mask) return false;
      page = (page / kBits + 1) * kBits;
    }
    return true;
  }

  // Marks the pages that lie wholly in [begin, end); the file's last page ends where the file does.
  // A mark that another thread sets in the same moment may be lost. Such a page is recorded again,
  // which costs less than a locked instruction at each read.
  void Mark(uint64_t begin, uint64_t end) {
    uint64_t page = (begin + kPage - 1) / kPage;
    const uint64_t stop = std::min(end >= size_ ? pages_ : end / kPage, pages_);
    while (page < stop) {
      const uint64_t mask = Mask(page, stop - 1);
      std::atomic<uint64_t>& word = words_[page / kBits];
      word.store(word.load(std::memory_order_relaxed) | mask, std::memory_order_relaxed);
      page = (page / kBits + 1) * kBits;
    }
  }

  // Nothing is marked any more.
  void Clear() {
    for (uint64_t word = 0; word < (pages_ + kBits - 1) / kBits; ++word)
      words_[word].store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t kBits = 64;
  // Bits of the pages [page, last], as far as they are in the word of `page`.
  static uint64_t Mask(uint64_t page, uint64_t last) {
    const uint64_t from = page % kBits;
    const uint64_t count = std::min(last - page + 1, kBits - from);
    return (count == kBits ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << from;
  }

  std::atomic<uint64_t>* words_ = nullptr;
  uint64_t pages_ = 0;
  uint64_t size_ = 0;
  std::atomic<uint64_t> inline_word_{0};
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FILES_SEEN_PAGES_H_

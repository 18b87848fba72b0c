// CallList: a rank's collectives on one communicator, in their order.
//
// A rank of a job makes the calls that the others make. So a list may share the front of another
// rank's (the trimmer does that), with calls of its own where they differ. A shared call has that
// rank's time, input and duration; all else is the rank's own. Lists that share calls share them
// with their copies, too. Const: any thread.
#ifndef DEJA_CHECK_EVIDENCE_CALL_LIST_H_
#define DEJA_CHECK_EVIDENCE_CALL_LIST_H_

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "check/evidence/call.h"

namespace deja::check {

class CallList {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Call;
    using difference_type = std::ptrdiff_t;
    using pointer = const Call*;
    using reference = const Call&;

    Iterator() = default;
    Iterator(const CallList& list, size_t index) : list_(&list), index_(index) {}
    reference operator*() const { return (*list_)[index_]; }
    pointer operator->() const { return &(*list_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++index_;
      return before;
    }
    [[nodiscard]] size_t index() const { return index_; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }

   private:
    const CallList* list_ = nullptr;
    size_t index_ = 0;
  };

  [[nodiscard]] size_t size() const { return shared_size_ + own_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  const Call& operator[](size_t index) const {
    if (index >= shared_size_) return own_[index - shared_size_];
    if (!exceptions_.empty()) {
      const auto it = std::lower_bound(exceptions_.begin(), exceptions_.end(), index + dropped_,
                                       [](const Exception& a, size_t at) { return a.first < at; });
      if (it != exceptions_.end() && it->first == index + dropped_) return it->second;
    }
    return (*shared_)[index + dropped_];
  }
  [[nodiscard]] const Call& front() const { return (*this)[0]; }
  [[nodiscard]] const Call& back() const { return (*this)[size() - 1]; }
  [[nodiscard]] Iterator begin() const { return {*this, 0}; }
  [[nodiscard]] Iterator end() const { return {*this, size()}; }

  // From this one on, times are the rank's own.
  [[nodiscard]] size_t OwnFrom() const { return is_source_ ? 0 : shared_size_; }

  // The calls of a list that shares none.
  std::vector<Call>& Own() { return own_; }
  [[nodiscard]] const std::vector<Call>& Own() const { return own_; }

  // An index of the shared list, and the call that is there instead.
  using Exception = std::pair<size_t, Call>;

  // Lets other lists share all calls, which are this list's own.
  void BecomeSource() {
    shared_ = std::make_shared<std::vector<Call>>(std::exchange(own_, {}));
    shared_->shrink_to_fit();
    shared_size_ = shared_->size();
    is_source_ = true;
  }
  // Takes the first `size` calls from `source`, but for the exceptions, by rising index.
  void Share(const CallList& source, size_t size, std::vector<Exception> exceptions) {
    own_ = std::vector<Call>(own_.begin() + static_cast<std::ptrdiff_t>(size), own_.end());
    exceptions.shrink_to_fit();
    exceptions_ = std::move(exceptions);
    shared_ = source.shared_;
    shared_size_ = size;
  }
  // Forgets the first calls.
  void DropFront(size_t count) {
    const size_t of_shared = std::min(count, shared_size_);
    dropped_ += of_shared;
    shared_size_ -= of_shared;
    own_.erase(own_.begin(), own_.begin() + static_cast<std::ptrdiff_t>(count - of_shared));
  }

  // Calls `change(Call&)` for each call that has the numbers of the rank's own tables. A source
  // changes what others share.
  template <typename Change>
  void ForEachOwn(const Change& change) {
    if (is_source_) std::for_each(shared_->begin(), shared_->end(), change);
    for (Exception& exception : exceptions_) change(exception.second);
    std::for_each(own_.begin(), own_.end(), change);
  }

 private:
  std::shared_ptr<std::vector<Call>> shared_;
  size_t dropped_ = 0;      // of those in front
  size_t shared_size_ = 0;  // after them
  bool is_source_ = false;
  std::vector<Exception> exceptions_;
  std::vector<Call> own_;  // after the shared ones
};

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_CALL_LIST_H_

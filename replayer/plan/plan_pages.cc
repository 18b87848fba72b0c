#include "replayer/plan/plan_pages.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>

namespace deja::replayer {
namespace {

constexpr uint64_t kCalls = format::KindBit(format::EventKind::kCallEnter) |
                            format::KindBit(format::EventKind::kCallLeave) |
                            format::KindBit(format::EventKind::kCallResults);

using WordSpan = std::span<const uint64_t>;
using TensorSpan = std::span<const format::Tensor>;

// Hands the words and the tensors of an event to `take`; other events have none.
template <typename Take>
void WithElements(const format::Event& event, Take take) {
  if (const auto* enter = event.As<format::CallEnter>())
    take(WordSpan{enter->args.begin(), enter->args.size()},
         TensorSpan{enter->inputs.begin(), enter->inputs.size()});
  else if (const auto* leave = event.As<format::CallLeave>())
    take(WordSpan{leave->outs.begin(), leave->outs.size()}, TensorSpan{});
  else if (const auto* results = event.As<format::CallResults>())
    take(WordSpan{}, TensorSpan{results->outputs.begin(), results->outputs.size()});
}

}  // namespace

void PlanPages::BeginBatch(size_t batch) {
  words_ = {words_.at + words_.size, 0};
  tensors_ = {tensors_.at + tensors_.size, 0};
  // A batch without calls has no page.
  if (!pages_.empty() && pages_.back().first_word == words_.at &&
      pages_.back().first_tensor == tensors_.at)
    pages_.pop_back();
  pages_.push_back({batch, words_.at, tensors_.at});
}

bool PlanPages::Count(const format::Event& event) {
  words_ = {words_.at + words_.size, 0};
  tensors_ = {tensors_.at + tensors_.size, 0};
  bool fits = true;
  WithElements(event, [&](WordSpan words, TensorSpan tensors) {
    fits = words_.at < kKept - words.size() && tensors_.at < kKept - tensors.size();
    if (!fits) return;
    words_.size = static_cast<uint32_t>(words.size());
    tensors_.size = static_cast<uint32_t>(tensors.size());
  });
  return fits;
}

bool PlanPages::Keep(const std::vector<format::Tensor>& tensors, PoolRange& range) {
  if (kept_.size() + tensors.size() >= kKept) return false;
  range = {kKept + static_cast<uint32_t>(kept_.size()), static_cast<uint32_t>(tensors.size())};
  kept_.insert(kept_.end(), tensors.begin(), tensors.end());
  return true;
}

std::shared_ptr<const PlanPages::Loaded> PlanPages::Load(size_t page) const {
  auto loaded = std::make_shared<Loaded>();
  const auto cursor = reader_.EventsOfBatch(pages_[page].batch);
  while (const format::Event* event = cursor->NextOf(kCalls))
    WithElements(*event, [&](WordSpan words, TensorSpan tensors) {
      loaded->words.insert(loaded->words.end(), words.begin(), words.end());
      loaded->tensors.insert(loaded->tensors.end(), tensors.begin(), tensors.end());
    });
  return loaded;
}

std::shared_ptr<const PlanPages::Loaded> PlanPages::Get(size_t page) const {
  {
    const std::lock_guard<FutexMutex> lock(mutex_);
    for (Slot& slot : slots_) {
      if (slot.page != page) continue;
      slot.used = ++uses_;
      return slot.loaded;
    }
  }
  // Two threads may decode the same page: rarer than waiting for each other's.
  std::shared_ptr<const Loaded> loaded = Load(page);
  const std::lock_guard<FutexMutex> lock(mutex_);
  Slot& oldest = *std::min_element(slots_.begin(), slots_.end(),
                                   [](const Slot& a, const Slot& b) { return a.used < b.used; });
  oldest = {page, ++uses_, loaded};
  return loaded;
}

template <typename T>
std::vector<T> PlanPages::Gather(PoolRange range, uint32_t Page::*first,
                                 std::vector<T> Loaded::*elements) const {
  std::vector<T> gathered;
  gathered.reserve(range.size);
  // The last page that begins before it or with it.
  const auto behind =
      std::upper_bound(pages_.begin(), pages_.end(), range.at,
                       [&](uint32_t at, const Page& page) { return at < page.*first; });
  size_t page = behind == pages_.begin() ? 0 : static_cast<size_t>(behind - pages_.begin()) - 1;
  for (; page < pages_.size() && pages_[page].*first < range.at + range.size; ++page) {
    const std::shared_ptr<const Loaded> loaded = Get(page);
    const std::vector<T>& all = (*loaded).*elements;
    // A batch that cannot be read any more has none.
    const size_t at = range.at + gathered.size() - pages_[page].*first;
    const size_t some =
        at < all.size() ? std::min(all.size() - at, range.size - gathered.size()) : 0;
    for (size_t i = 0; i < some; ++i) gathered.push_back(all[at + i]);
    if (gathered.size() == range.size) break;
  }
  gathered.resize(range.size);
  return gathered;
}

std::vector<uint64_t> PlanPages::Words(PoolRange range) const {
  if (range.size == 0) return {};
  return Gather(range, &Page::first_word, &Loaded::words);
}

std::vector<format::Tensor> PlanPages::Tensors(PoolRange range) const {
  if (range.size == 0) return {};
  if ((range.at & kKept) == 0) return Gather(range, &Page::first_tensor, &Loaded::tensors);
  const auto begin = kept_.begin() + static_cast<std::ptrdiff_t>(range.at - kKept);
  return {begin, begin + static_cast<std::ptrdiff_t>(range.size)};
}

}  // namespace deja::replayer

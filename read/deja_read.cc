#include "read/deja_read.h"

#include <sys/stat.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "format/reader/rank_reader.h"
#include "format/trace/trace.h"

struct deja_read_trace {
  std::unique_ptr<deja::format::Trace> trace;
};

namespace {

using deja::format::EventKind;
using deja::format::KindBit;

thread_local std::string t_error;

int64_t FailWith(std::string why) {
  t_error = std::move(why);
  return -1;
}

// What a caller asked for.
struct Wanted {
  int64_t comm = -1;
  int64_t first = -1;
  int64_t last = -1;
  uint32_t which = DEJA_READ_INPUTS | DEJA_READ_RESULTS;

  [[nodiscard]] bool Holds(uint32_t number, uint64_t seq) const {
    if (number == 0 || seq == 0) return false;
    if (comm >= 0 && number != static_cast<uint64_t>(comm) + 1) return false;
    return first < 0 || (seq >= static_cast<uint64_t>(first) && seq <= static_cast<uint64_t>(last));
  }
  // Whether all results of the range have come before those of this operation, or with them.
  [[nodiscard]] bool IsAtEnd(uint32_t number, uint64_t seq) const {
    return number == static_cast<uint64_t>(comm) + 1 && seq >= static_cast<uint64_t>(last);
  }
};

class TensorList {
 public:
  TensorList(const deja::format::RankReader& reader, const Wanted& wanted,
             std::span<deja_read_tensor> out, deja_read_statistics* statistics)
      : reader_(reader), wanted_(wanted), out_(out), statistics_(statistics) {}

  int64_t Fill() {
    // Results of one operation come before those of a later one of its communicator.
    const bool is_range = wanted_.comm >= 0 && wanted_.first >= 0;
    auto cursor = is_range ? reader_.EventsFromOp(static_cast<uint32_t>(wanted_.comm) + 1,
                                                  static_cast<uint64_t>(wanted_.first))
                           : reader_.Events();
    const bool inputs = (wanted_.which & DEJA_READ_INPUTS) != 0;
    const bool has_results = (wanted_.which & DEJA_READ_RESULTS) != 0;
    // Results say where a range ends.
    const uint64_t kinds =
        KindBit(EventKind::kCallResults) | (inputs ? KindBit(EventKind::kCallEnter) : 0);
    bool is_done = false;
    while (const deja::format::Event* event = is_done ? nullptr : cursor->NextOf(kinds)) {
      if (const auto* enter = event->As<deja::format::CallEnter>()) {
        if (wanted_.Holds(enter->comm, enter->comm_seq)) Add(*enter, enter->inputs, false);
      } else if (const auto* results = event->As<deja::format::CallResults>()) {
        if (has_results && wanted_.Holds(results->comm, results->comm_seq))
          Add(*results, results->outputs, true);
        is_done = is_range && wanted_.IsAtEnd(results->comm, results->comm_seq);
      }
    }
    return count_;
  }

 private:
  template <typename Body, typename Tensors>
  void Add(const Body& body, const Tensors& tensors, bool is_result) {
    for (const deja::format::Tensor& tensor : tensors) {
      if (tensor.hash.IsZero()) continue;
      const auto index = static_cast<size_t>(count_++);
      if (index >= out_.size()) continue;
      deja_read_tensor& one = out_[index];
      one = {};
      one.comm = body.comm - 1;
      one.seq = body.comm_seq;
      one.dtype = tensor.dtype;
      one.count = tensor.count;
      one.bytes = reader_.PayloadSize(tensor.hash).value_or(0);
      std::memcpy(one.hash, tensor.hash.bytes.data(), sizeof one.hash);
      one.is_result = is_result ? 1 : 0;
      const deja::format::TensorStats& stats = tensor.stats;
      if (statistics_ != nullptr)
        statistics_[index] = {stats.nan_count, stats.inf_count, stats.min,
                              stats.max,       stats.sum,       stats.sum_squares};
    }
  }

  const deja::format::RankReader& reader_;
  const Wanted wanted_;
  std::span<deja_read_tensor> out_;
  deja_read_statistics* statistics_;  // as many
  int64_t count_ = 0;
};

}  // namespace

extern "C" {

const char* deja_read_error(void) {
  return t_error.c_str();
}

deja_read_trace* deja_read_open(const char* directory) {
  struct stat facts {};
  if (stat(directory, &facts) == 0 && !S_ISDIR(facts.st_mode)) {
    t_error = std::string("opening ") + directory + ": it is no directory; unpack it first";
    return nullptr;
  }
  auto opened = deja::format::Trace::Open(directory);
  if (!opened) {
    t_error = opened.error().message;
    return nullptr;
  }
  return new deja_read_trace{std::move(*opened)};
}

void deja_read_close(deja_read_trace* trace) {
  delete trace;
}

int64_t deja_read_ranks(const deja_read_trace* trace, uint32_t* ranks, int64_t most) {
  int64_t count = 0;
  const auto& folders = trace->trace->ranks();
  for (size_t i = 0; i < folders.size(); ++i) {
    if (i > 0 && folders[i].rank == folders[i - 1].rank) continue;
    if (count < most) ranks[count] = folders[i].rank;
    ++count;
  }
  return count;
}

int64_t deja_read_tensors(deja_read_trace* trace, uint32_t rank, int64_t comm, int64_t first,
                          int64_t last, uint32_t which, deja_read_tensor* tensors,
                          deja_read_statistics* statistics, int64_t most) {
  auto reader = trace->trace->Rank(rank);
  if (!reader) return FailWith(reader.error().message);
  return TensorList(**reader, {comm, first, last, which}, {tensors, static_cast<size_t>(most)},
                    statistics)
      .Fill();
}

int deja_read_payload(deja_read_trace* trace, uint32_t rank, const uint8_t hash[16], void* out,
                      uint64_t size) {
  auto reader = trace->trace->Rank(rank);
  if (!reader) return static_cast<int>(FailWith(reader.error().message));
  deja::Hash128 name;
  std::memcpy(name.bytes.data(), hash, name.bytes.size());
  const deja::Status read =
      (*reader)->ReadPayload(name, {static_cast<std::byte*>(out), static_cast<size_t>(size)});
  if (read) return 0;
  const auto kept = (*reader)->PayloadSize(name);
  if (!kept) return static_cast<int>(FailWith("reading a tensor: its bytes were not kept"));
  if (*kept != size) return static_cast<int>(FailWith("reading a tensor: its size is another one"));
  return static_cast<int>(FailWith(read.error().message));
}

}  // extern "C"

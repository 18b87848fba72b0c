// BatchSummary: what the index says about one event batch, gathered while events go by; and what it
// says about several together.
//
// Used by the writer as it fills a batch and by the reader as it scans one without an index: both
// give the same. Allocates. One thread.
#ifndef DEJA_FORMAT_WIRE_BATCH_INFO_H_
#define DEJA_FORMAT_WIRE_BATCH_INFO_H_

#include <cstdint>
#include <unordered_map>

#include "format/wire/messages.h"

namespace deja::format {

// BatchInfo.kinds has 32 bits; the last one stands for all kinds from 31 on, which more_kinds tells
// apart.
inline constexpr uint32_t kLastKindBit = 31;

// The kinds of a batch's events, as KindBit has them.
uint64_t KindsOf(const BatchInfo& batch);

class BatchSummary {
 public:
  // `body_field` as DecodeEvent gives it.
  void Add(const Event& event, uint32_t body_field);
  [[nodiscard]] uint64_t events() const { return events_; }
  // The entry for the index; the summary is empty again afterwards.
  BatchInfo Take(uint64_t offset, uint64_t size);

 private:
  BatchInfo info_;
  uint64_t events_ = 0;
  std::unordered_map<uint32_t, size_t> thread_at_;  // where in info_.threads
  std::unordered_map<uint32_t, size_t> comm_at_;
};

// What batches are together, as they come in the order of the file.
class BlockSummary {
 public:
  // Adds a batch of the block.
  void Add(const BatchInfo& batch);
  // For the frame at `offset`; the summary is empty again afterwards.
  BatchBlock Take(uint64_t offset);

 private:
  BatchBlock block_;
  uint64_t last_step_ = 0;
  std::unordered_map<uint32_t, size_t> thread_at_;  // where in block_.all.threads
  std::unordered_map<uint32_t, size_t> comm_at_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_WIRE_BATCH_INFO_H_

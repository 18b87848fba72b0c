// MakeEventCursor: the cursor behind RankReader's Events(), over batches of the file and the tail.
//
// Borrows what it is given; holds the tail. Each cursor is for one thread.
#ifndef DEJA_FORMAT_READER_EVENT_CURSOR_H_
#define DEJA_FORMAT_READER_EVENT_CURSOR_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "common/os/file.h"
#include "format/reader/rank_reader.h"
#include "format/tail/tail_reader.h"

namespace deja::format {

// Events of the tail that the file does not have, in the order in which they are handed out.
using TailEvents = std::vector<std::span<const std::byte>>;

// The events of batches [first_batch, end_batch) of `batches`; that with size 0 is `tail_events`,
// which point into `tail`.
std::unique_ptr<EventCursor> MakeEventCursor(const ReadFile& file, const BatchList& batches,
                                             std::shared_ptr<const TailReader> tail,
                                             const TailEvents& tail_events, size_t first_batch,
                                             size_t end_batch);

}  // namespace deja::format

#endif  // DEJA_FORMAT_READER_EVENT_CURSOR_H_

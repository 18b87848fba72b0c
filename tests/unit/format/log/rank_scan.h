// Reads a rank's folder and tail in the plainest way: every frame, one after the other, without
// index and footer. Tests of the writing side compare with it what they wrote.
#ifndef DEJA_TESTS_UNIT_FORMAT_LOG_RANK_SCAN_H_
#define DEJA_TESTS_UNIT_FORMAT_LOG_RANK_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/ids.h"
#include "format/wire/messages.h"
#include "tests/support/temp_dir.h"

namespace deja::format {

struct ScannedEvent {
  uint32_t thread = 0;
  uint64_t seq = 0;
  EventKind kind = EventKind::kNone;
  std::string note;  // text of a Note, reason of a Degraded
  bool operator==(const ScannedEvent&) const = default;
};

struct RankScan {
  bool finished = false;  // the events file ends with a footer
  Footer footer;
  uint64_t index_events = 0;
  uint64_t index_payloads = 0;
  uint64_t bad_bytes = 0;  // torn or corrupt
  uint32_t rank = 0, attempt = 0;
  std::string tail_path, tail_id, producer;
  std::vector<ScannedEvent> events;  // the folder's, then what only the tail has
  uint64_t events_from_tail = 0;
  std::map<Hash128, std::string> payloads;  // whole ones, decoded
  uint64_t payload_chunks = 0;
  uint64_t differences = 0;  // of these
  std::string problem;       // what should not be: duplicates, gaps, undecodable messages

  // The texts of the Notes of one thread, in order.
  [[nodiscard]] std::vector<std::string> Notes(uint32_t thread) const;
};

RankScan ScanRank(const std::string& folder, bool use_tail);

// An encoded event that carries `text`.
std::string NoteEvent(uint32_t thread, uint64_t seq, const std::string& text);
Hash128 HashOf(const std::string& bytes);
// Bytes that do not repeat, the same for the same seed.
std::string SomeBytes(uint64_t seed, size_t size);

std::vector<std::string> ListDir(const std::string& path);

}  // namespace deja::format

#endif  // DEJA_TESTS_UNIT_FORMAT_LOG_RANK_SCAN_H_

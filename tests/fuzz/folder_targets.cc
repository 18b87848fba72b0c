// Tails and recovery.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "common/os/file.h"
#include "format/log/rank_log.h"
#include "format/reader/rank_reader.h"
#include "format/repair/recovery.h"
#include "format/tail/tail_reader.h"
#include "format/wire/frame_format.h"
#include "format/wire/message_codec.h"
#include "tests/fuzz/more_targets.h"
#include "tests/fuzz/rank_input.h"
#include "tests/support/sample_trace.h"

namespace deja::format::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

// The tail of a process that ended without closing its log.
Bytes MakeTail() {
  const samples::ScratchFolder trace;
  const samples::ScratchFolder tails;
  const pid_t child = fork();
  if (child == 0) {
    RankLogOptions options;
    options.trace_dir = trace.path();
    options.tail_dir = tails.path();
    options.ring_bytes = 16 << 10;
    options.payload_bytes = 64 << 10;
    auto log = RankLog::Create(options);
    if (!log) _exit(1);
    for (uint32_t thread = 0; thread < 2; ++thread) {
      EventSink* sink = (*log)->ClaimSink(thread);
      for (uint64_t seq = 0; seq < 20; ++seq) {
        const std::string text(seq * 9, 'x');
        const EventHead head{thread, seq, 1};
        if (seq % 2 == 0 || !sink->AppendRaw(head, Note{text}))
          sink->Append(AsBytes(EncodeEventToString(head, Note{text})));
      }
    }
    for (const size_t size : {100, 5000, 20000}) {
      const std::string bytes(size, 'p');
      (void)(*log)->PutPayload(samples::HashOf(bytes), AsBytes(bytes), 2);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Check(status == 0, "a tail can be made");
  Bytes tail;
  for (const auto& entry : std::filesystem::directory_iterator(tails.path()))
    if (entry.is_regular_file()) tail = samples::FileBytes(entry.path().string());
  Check(!tail.empty(), "a tail is there");
  return tail;
}

const Bytes& GoodTail() {
  static const Bytes tail = MakeTail();
  return tail;
}

constexpr size_t kChangeBytes = 5;  // where, 24 bits; how many bytes; what is added to each

}  // namespace

void RunTail(std::span<const std::byte> bytes) {
  Bytes tail = GoodTail();
  const auto byte = [&](size_t i) { return static_cast<size_t>(bytes[i]); };
  for (size_t i = 0; i + kChangeBytes <= bytes.size(); i += kChangeBytes) {
    const size_t at = (byte(i) | byte(i + 1) << 8 | byte(i + 2) << 16) % tail.size();
    const size_t end = std::min(tail.size(), at + byte(i + 3) % 8 + 1);
    for (size_t k = at; k < end; ++k)
      tail[k] = static_cast<std::byte>(static_cast<size_t>(tail[k]) + byte(i + 4));
  }
  if (bytes.size() % kChangeBytes == 1) tail.resize(tail.size() * byte(bytes.size() - 1) / 256);
  const size_t size = tail.size();
  const auto reader = TailReader::Open(MakeMemoryFile("tail", std::move(tail)), "");
  if (!reader) return;
  (void)(*reader)->WriterAlive();
  Check((*reader)->emergency_events() <= (*reader)->events().size(), "emergencies are events");
  uint64_t total = 0;
  for (const auto& event : (*reader)->events()) total += event.size();
  Check(total <= 16 * size, "events come out of the tail");
  for (const TailPayload& part : (*reader)->payloads()) {
    Check(part.size <= size, "a payload fits into the tail");
    Bytes out(static_cast<size_t>(part.size));
    (void)(*reader)->ReadPayload(part, out);
  }
}

std::vector<Bytes> TailSeeds() {
  std::vector<Bytes> seeds = {{std::byte{0}}};
  // A change of each of the first words, where the layout is.
  for (size_t at = 0; at < 512; at += 8)
    seeds.push_back({static_cast<std::byte>(at), static_cast<std::byte>(at >> 8), std::byte{0},
                     std::byte{0}, std::byte{1}});
  return seeds;
}

void RunRecovery(std::span<const std::byte> bytes) {
  static const samples::ScratchFolder scratch;
  const std::string folder = scratch.path() + "/rank-00000";
  WriteRankInput(bytes, folder);
  // A tail would be read, or removed, and is one of this machine.
  if (OpenRankInput(folder) == nullptr) return;
  const auto report = RecoverRank(folder, {});
  if (!report) return;
  const auto reader = RankReader::Open(folder, {.use_tail = false});
  Check(reader.has_value(), "what was recovered can be read");
  const auto cursor = (*reader)->Events();
  while (cursor->Next() != nullptr) {
  }
  const auto again = RecoverRank(folder, {});
  Check(again && again->was_finished, "what was recovered is finished");
}

}  // namespace deja::format::fuzz

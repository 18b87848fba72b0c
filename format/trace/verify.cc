#include "format/trace/verify.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/os/file.h"
#include "common/text/hex_text.h"
#include "format/layout/payload_segments.h"
#include "format/payloads/payload_table.h"
#include "format/reader/file_ranges.h"
#include "format/trace/payload_uses.h"
#include "format/trace/referred_payloads.h"
#include "format/wire/frame_format.h"
#include "format/wire/frame_reader.h"

namespace deja::format {
namespace {

constexpr size_t kMaxProblems = 1000;  // of one trace; a hopeless one needs no longer list

using Progress = std::function<void(uint64_t, uint64_t)>;

std::string Hex(const Hash128& hash) {
  return HexText({reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size()});
}

// What the threads that verify one trace have in common.
class Common {
 public:
  Common(const Progress& progress, uint64_t total, std::string absent, std::string job)
      : progress_(progress), total_(total), absent_(std::move(absent)), job_(std::move(job)) {}

  [[nodiscard]] const std::string& absent() const { return absent_; }

  void Advance(uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = std::min(done_ + bytes, total_);
    if (progress_) progress_(done_, total_);
  }

  // The first rank's that can be read is the trace's.
  [[nodiscard]] bool IsOfJob(const std::string& id) const { return id == job_; }

  // True for the first who asks: what several ranks have together is put together once.
  bool Claim(const Hash128& hash) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return assembled_.insert(hash).second;
  }

 private:
  std::mutex mutex_;
  const Progress& progress_;
  const uint64_t total_;
  const std::string absent_;  // "rank 1, 5" of the job without a folder
  const std::string job_;
  uint64_t done_ = 0;
  std::unordered_set<Hash128, HashOfHash> assembled_;
};

// Totals of one folder.
class Verifier {
 public:
  Verifier(VerifyReport& report, Common& common) : report_(report), common_(common) {}

  // `child`: name of a process of the rank; empty: the rank itself.
  void Folder(const RankFolder& owner, const std::string& child, const std::string& folder,
              const Result<const RankReader*>& reader) {
    rank_ = owner.rank;
    child_ = child;
    ++(child.empty() ? report_.ranks : report_.children);
    Frames(folder, kEventsFile);
    for (const uint32_t segment : ListSegments(folder)) Frames(folder, SegmentFileName(segment));
    if (!reader) {
      Problem(kEventsFile, 0, reader.error().message);
      return;
    }
    if (folder == owner.path && !IsOf(**reader, owner))
      Problem(kEventsFile, 0,
              "its header says rank " + std::to_string((*reader)->header().rank) + ", attempt " +
                  std::to_string((*reader)->header().attempt) +
                  ": the folder was copied or renamed");
    if (!common_.IsOfJob(std::string((*reader)->header().job_id)))
      Problem(kEventsFile, 0, "its header names another job than that of the first rank");
    Events(**reader);
    const uint64_t end = (*reader)->file_bytes();
    Payloads(**reader, end);
    Advance(end - std::min(end, done_));
  }

 private:
  void Problem(std::string file, uint64_t offset, std::string what) {
    if (report_.problems.size() < kMaxProblems) {
      report_.problems.push_back({rank_, child_, std::move(file), offset, std::move(what)});
    }
  }

  void Advance(uint64_t bytes) {
    done_ += bytes;
    common_.Advance(bytes);
  }

  void Frames(const std::string& folder, const std::string& name) {
    const Result<std::unique_ptr<ReadFile>> file = OpenReadFile(folder + "/" + name);
    if (!file) return Problem(name, 0, file.error().message);
    FrameReader reader(**file);
    const Status magic = reader.CheckMagic();
    if (!magic) return Problem(name, 0, magic.error().message);
    std::vector<std::byte> payload;
    for (;;) {
      const FrameResult frame = reader.Next(payload);
      switch (frame.outcome) {
        case FrameOutcome::kRecord:
          ++report_.frames;
          Advance(name == kEventsFile ? frame.size : 0);
          continue;
        case FrameOutcome::kCorrupt:
          Problem(name, frame.offset,
                  frame.reason + " (" + std::to_string(frame.size) + " bytes lost)");
          continue;
        case FrameOutcome::kTornTail:
          Problem(name, frame.offset,
                  frame.reason + " (" + std::to_string(frame.size) +
                      " bytes lost): the process died and its recording is not complete; "
                      "'deja recover' completes it");
          return;
        case FrameOutcome::kCleanEnd:
          return;
      }
    }
  }

  // What the window has dropped is not missing.
  void LeaveOutDropped(const RankReader& reader) {
    referred_.EraseIf([&](const Hash128&, uint32_t segment) {
      const bool dropped = reader.Dropped(segment);
      report_.payloads_dropped += dropped ? 1 : 0;
      return dropped;
    });
  }

  void Events(const RankReader& reader) {
    std::unordered_map<uint32_t, uint64_t> next_seq;
    uint64_t events = 0;
    uint64_t gaps = 0;
    const std::unique_ptr<EventCursor> cursor = reader.Events();
    while (const Event* event = cursor->Next()) {
      ++events;
      uint64_t& next = next_seq[event->thread];
      if (event->seq < next) {
        Problem(kEventsFile, 0,
                "thread " + std::to_string(event->thread) + ": event " +
                    std::to_string(event->seq) + " comes after event " + std::to_string(next - 1));
      } else {
        gaps += event->seq - next;
        next = event->seq + 1;
      }
      ForEachPayload(*event, [&](const PayloadReference& payload) { referred_.Add(payload); });
    }
    if (const Status settled = referred_.Settle(); !settled)
      Problem(kEventsFile, 0, settled.error().message);
    if (!cursor->damage().empty()) Problem(kEventsFile, 0, cursor->damage());
    const Footer& totals = reader.totals();
    if (events != totals.events) {
      Problem(kEventsFile, 0,
              "the footer counts " + std::to_string(totals.events) + " events, there are " +
                  std::to_string(events));
    }
    report_.events += events;
    report_.events_lost += std::max(gaps, totals.events_lost);
  }

  // `end`: where the progress of this rank ends.
  void Payloads(const RankReader& reader, uint64_t end) {
    const uint64_t share =
        (end - std::min(end, done_)) / std::max<uint64_t>(reader.totals().payloads, 1);
    std::optional<Hash128> last;
    for (std::vector<PayloadInfo> some; reader.own_payloads().ListAfter(last, some);)
      for (const PayloadInfo& payload : some) {
        Payload(reader, payload);
        if (done_ < end) Advance(std::min(share, end - done_));
      }
    if (!reader.header().shares_with.empty()) Shared(reader);
    LeaveOutDropped(reader);
    if (referred_.size() <= reader.left_out().payloads) {
      report_.payloads_left_out += referred_.size();
      return;
    }
    report_.payloads_missing += referred_.size();
    if (!reader.header().shares_with.empty()) return SharedAreMissing();
    size_t listed = 0;
    referred_.ForEach([&](const Hash128& hash) {
      if (++listed <= 10)
        Problem(kPayloadsFile, 0, "payload " + Hex(hash) + " is referred to and not there");
    });
  }

  void Payload(const RankReader& reader, const PayloadInfo& payload) {
    const Status read = reader.StreamPayload(payload.hash, [](std::span<const std::byte>) {});
    if (!read)
      return Problem(SegmentFileName(payload.segment),
                     payload.chunk_offsets.empty() ? 0 : payload.chunk_offsets.front(),
                     "payload " + Hex(payload.hash) + ": " + read.error().message);
    referred_.Erase(payload.hash);
    ++report_.payloads;
    report_.payload_bytes += payload.total_size;
  }

  // What other ranks keep for this one. Their own folders are checked with them.
  void Shared(const RankReader& reader) {
    referred_before_ = referred_.size();
    referred_.EraseIf([&](const Hash128& hash, uint32_t) {
      const std::optional<uint64_t> size = reader.PayloadSize(hash);
      if (!size) return false;
      if (!reader.own_payloads().PartOf(hash) || !common_.Claim(hash)) return true;
      const Status read = reader.StreamPayload(hash, [](std::span<const std::byte>) {});
      if (!read) {
        Problem(
            kPayloadsFile, 0,
            "payload " + Hex(hash) + ", with the pieces of other ranks: " + read.error().message);
      } else {
        ++report_.payloads;
        report_.payload_bytes += *size;
      }
      return true;
    });
  }

  void SharedAreMissing() {
    Problem(kPayloadsFile, 0,
            std::to_string(referred_.size()) + " of " + std::to_string(referred_before_) +
                " payloads that other ranks of its machine keep for it are not there" +
                (common_.absent().empty() ? "" : "; not in the trace: " + common_.absent()));
  }

  VerifyReport& report_;
  Common& common_;
  uint64_t done_ = 0;
  uint32_t rank_ = 0;
  std::string child_;
  ReferredPayloads referred_;
  size_t referred_before_ = 0;
};

// "rank 1, 5 and 3 more": those of the job that have no folder.
std::string AbsentRanks(const std::vector<RankFolder>& ranks, uint32_t world_size) {
  constexpr size_t kMost = 10;
  std::string names;
  size_t absent = 0;
  auto next = ranks.begin();
  for (uint32_t rank = 0; rank < world_size; ++rank) {
    while (next != ranks.end() && next->rank < rank) ++next;
    if (next != ranks.end() && next->rank == rank) continue;
    if (++absent <= kMost) names += (absent == 1 ? "rank " : ", ") + std::to_string(rank);
  }
  if (absent > kMost) names += " and " + std::to_string(absent - kMost) + " more";
  return names;
}

struct Part {
  RankFolder owner;
  std::string child;
  std::string folder;
  Result<const RankReader*> reader;
};

// The report of each.
std::vector<VerifyReport> VerifyAll(const std::vector<Part>& parts, Common& common) {
  constexpr size_t kMostThreads = 8;
  std::vector<VerifyReport> reports(parts.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < parts.size(); i = next++) {
      const Part& part = parts[i];
      Verifier(reports[i], common).Folder(part.owner, part.child, part.folder, part.reader);
    }
  };
  const size_t processors =
      std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
  std::vector<std::thread> helpers(std::min(processors, parts.size()) - 1);
  for (std::thread& helper : helpers) helper = std::thread(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  return reports;
}

void Add(VerifyReport& sum, VerifyReport&& one) {
  sum.ranks += one.ranks;
  sum.children += one.children;
  sum.frames += one.frames;
  sum.events += one.events;
  sum.payloads += one.payloads;
  sum.payload_bytes += one.payload_bytes;
  sum.events_lost += one.events_lost;
  sum.payloads_missing += one.payloads_missing;
  sum.payloads_dropped += one.payloads_dropped;
  sum.payloads_left_out += one.payloads_left_out;
  const size_t room = kMaxProblems - std::min(kMaxProblems, sum.problems.size());
  const auto end =
      one.problems.begin() + static_cast<ptrdiff_t>(std::min(room, one.problems.size()));
  std::move(one.problems.begin(), end, std::back_inserter(sum.problems));
}

std::string FirstDamage(const std::string& path) {
  const Result<std::unique_ptr<ReadFile>> file = OpenReadFile(path);
  if (!file) return {};
  FrameReader reader(**file);
  std::vector<std::byte> payload;
  for (;;) {
    const FrameResult frame = reader.Next(payload);
    if (frame.outcome == FrameOutcome::kCorrupt)
      return path + ", offset " + std::to_string(frame.offset) + ": " + frame.reason;
    if (frame.outcome != FrameOutcome::kRecord) return {};
  }
}

}  // namespace

Result<VerifyReport> Verify(Trace& trace, const Progress& progress) {
  std::vector<Part> parts;
  std::set<std::string> before;
  for (const RankFolder& folder : trace.ranks()) before.insert(folder.path);
  for (const RankFolder& folder : trace.ranks()) {
    const auto attempt = static_cast<int>(folder.attempt);
    parts.push_back({folder, "", folder.path, trace.Rank(folder.rank, attempt)});
    DEJA_ASSIGN_OR_RETURN(const auto children, trace.Children(folder.rank, attempt));
    for (const ChildFolder& child : children)
      parts.push_back(
          {folder, child.name, child.path, trace.Child(folder.rank, child.name, attempt)});
    const auto life = trace.LifeBefore(folder.rank, attempt);
    for (size_t i = 0; life && i + 1 < life->size(); ++i)
      if (before.insert((*life)[i].path).second)
        parts.push_back({folder, "before its fork", (*life)[i].path, trace.Process((*life)[i])});
  }
  uint64_t total = 0;
  for (const Part& part : parts)
    if (part.reader) total += (*part.reader)->file_bytes();
  uint32_t world_size = 0;
  for (const Part& part : parts)
    if (part.reader && part.child.empty())
      world_size = std::max(world_size, (*part.reader)->header().world_size);
  // A size out of a trace is not to be trusted.
  world_size = std::min<uint32_t>(world_size, 1 << 20);
  const auto first = std::find_if(parts.begin(), parts.end(),
                                  [](const Part& part) { return part.reader.has_value(); });
  const std::string job =
      first == parts.end() ? std::string() : std::string((*first->reader)->header().job_id);
  Common common(progress, total, AbsentRanks(trace.ranks(), world_size), job);
  VerifyReport sum;
  for (VerifyReport& report : VerifyAll(parts, common)) Add(sum, std::move(report));
  return sum;
}

std::string FindContentDamage(const Trace& trace, const RankReader& reader) {
  const TraceHeader& header = reader.header();
  for (const RankFolder& folder : trace.ranks()) {
    const bool is_own = folder.rank == header.rank && folder.attempt == header.attempt;
    if (!is_own && header.shares_with.empty()) continue;
    for (const uint32_t segment : ListSegments(folder.path))
      if (std::string damage = FirstDamage(folder.path + "/" + SegmentFileName(segment));
          !damage.empty())
        return damage;
  }
  return {};
}

}  // namespace deja::format

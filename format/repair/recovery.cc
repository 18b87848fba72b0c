#include "format/repair/recovery.h"
#include "common/env_vars.h"
#include "format/tail/job_memory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/os/file.h"
#include "common/os/folder_entries.h"
#include "common/process/memory_cgroup.h"
#include "common/process/process_identity.h"
#include "common/runtime/futex.h"
#include "format/layout/folder_lock.h"
#include "format/layout/payload_segments.h"
#include "format/layout/rank_folder.h"
#include "format/log/rank_log.h"
#include "format/log/rank_writer.h"
#include "format/payloads/chunk_reader.h"
#include "format/payloads/payload_table.h"
#include "format/repair/scanned_payloads.h"
#include "format/tail/tail.h"
#include "format/tail/tail_reader.h"
#include "format/window/disk_ledger.h"
#include "format/window/shared_pieces.h"
#include "format/window/window_board.h"
#include "format/wire/batch_info.h"
#include "format/wire/format_version.h"
#include "format/wire/frame_format.h"
#include "format/wire/frame_reader.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  ForEachEntry(directory.c_str(), [&](const char* name, int) {
    names.emplace_back(name);
    return true;
  });
  return names;
}

// What is in the files of a folder whose process died.
class FolderScan {
 public:
  explicit FolderScan(const std::function<void(uint64_t)>* progress) : progress_(progress) {}
  Status Scan(const std::string& folder);

  RankFiles files;
  Footer footer;  // the last one, of a finished folder
  bool finished = false;
  uint64_t torn_bytes = 0;
  std::string tail_path;
  std::string tail_id;
  CgroupCount cgroup;                                  // when the process began
  std::map<uint32_t, uint64_t> last_seq;               // of each thread
  std::set<std::pair<uint32_t, uint64_t>> last_batch;  // (thread, seq)
  std::vector<SegmentRange> marked;
  ScannedPayloads payloads;

  // Adds what an event says about losses, and about payloads that were dropped.
  void NoteLosses(const Event& event) {
    if (const auto* window = event.As<WindowChange>()) {
      const SegmentRange range{window->first_segment, window->last_segment};
      if (window->what == static_cast<uint32_t>(WindowEvent::kDropped)) {
        AddRange(files.totals.dropped, range);
        files.totals.payloads_dropped += window->payloads;
        files.totals.payload_bytes_dropped += window->payload_bytes;
      } else if (window->what == static_cast<uint32_t>(WindowEvent::kMarked)) {
        marked.push_back(range);
      }
    }
    if (const auto* degraded = event.As<Degraded>()) {
      files.totals.events_lost = std::max(files.totals.events_lost, degraded->events_lost);
      files.totals.payloads_lost = std::max(files.totals.payloads_lost, degraded->payloads_lost);
    }
  }

 private:
  Status ScanEvents(const std::string& path);
  Status ScanSegments(const std::string& folder);
  Status ScanPayloads(const std::string& path, SegmentFile& segment);
  Status CountPayloads();
  void TakeBatch(const FrameResult& frame, std::span<const std::byte> payload);
  // `end`: of the frame that has been read, in its file.
  void TellProgress(uint64_t end) const {
    if (*progress_) (*progress_)(bytes_before_ + end);
  }

  const std::function<void(uint64_t)>* progress_;  // may be empty
  uint64_t bytes_before_ = 0;                      // of files that have been read
};

Status FolderScan::Scan(const std::string& folder) {
  DEJA_RETURN_IF_ERROR(ScanEvents(folder + "/" + kEventsFile));
  bytes_before_ = files.events_end;
  if (finished) return {};
  return ScanSegments(folder);
}

Status FolderScan::ScanSegments(const std::string& folder) {
  for (const uint32_t number : ListSegments(folder)) {
    const std::string path = folder + "/" + SegmentFileName(number);
    // Its process died when it had said so and had not done it.
    if (Contains(files.totals.dropped, number)) {
      unlink(path.c_str());
      continue;
    }
    SegmentFile segment;
    segment.facts.number = number;
    DEJA_RETURN_IF_ERROR(ScanPayloads(path, segment));
    bytes_before_ += segment.facts.bytes;
    files.segments.push_back(std::move(segment));
  }
  DEJA_RETURN_IF_ERROR(CountPayloads());
  for (const SegmentRange& range : marked) {
    for (SegmentFile& segment : files.segments)
      segment.facts.marked |= Contains({range}, segment.facts.number) ? 1 : 0;
  }
  return {};
}

Status FolderScan::CountPayloads() {
  DEJA_RETURN_IF_ERROR(payloads.Settle());
  std::map<uint32_t, Segment*> facts;
  for (SegmentFile& segment : files.segments) facts[segment.facts.number] = &segment.facts;
  Hash128 hash;
  ScannedPayloads::BySegment pieces;
  for (size_t at = 0; payloads.Next(at, hash, pieces);) {
    for (const auto& [segment, payload] : pieces) {
      if (!payload.IsWhole()) continue;
      ++facts.at(segment)->payloads;
      facts.at(segment)->payload_bytes += payload.total_size;
    }
  }
  return {};
}

void FolderScan::TakeBatch(const FrameResult& frame, std::span<const std::byte> payload) {
  BatchSummary summary;
  last_batch.clear();
  WireReader reader(payload);
  std::span<const std::byte> encoded;
  while (NextInBatch(reader, encoded)) {
    Event event;
    uint32_t body_field = 0;
    if (!DecodeEvent(encoded, event, &body_field)) continue;
    summary.Add(event, body_field);
    NoteLosses(event);
    uint64_t& last = last_seq[event.thread];
    last = std::max(last, event.seq);
    last_batch.insert({event.thread, event.seq});
    if (const auto* step = event.As<Step>()) {
      Footer& totals = files.totals;
      if (totals.steps == 0) totals.first_step = step->step;
      totals.first_step = std::min(totals.first_step, step->step);
      totals.last_step = std::max(totals.last_step, step->step);
      ++totals.steps;
    }
  }
  files.totals.events += summary.events();
  files.batches.push_back(summary.Take(frame.offset, frame.size));
}

Status FolderScan::ScanEvents(const std::string& path) {
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<ReadFile> file, OpenReadFile(path));
  if (const Result<uint64_t> at = FindFooter(*file)) {
    FrameReader reader(*file);
    std::vector<std::byte> payload;
    finished =
        reader.ReadAt(*at, payload).outcome == FrameOutcome::kRecord && Decode(payload, footer);
  }
  FrameReader reader(*file);
  DEJA_RETURN_IF_ERROR(reader.CheckMagic());
  std::vector<std::byte> payload;
  for (;;) {
    const FrameResult frame = reader.Next(payload);
    if (frame.outcome == FrameOutcome::kRecord) {
      files.events_end = frame.offset + frame.size;
      TellProgress(files.events_end);
      if (frame.type == FrameType::kHeader) {
        TraceHeader header;
        if (!Decode(payload, header)) break;
        if (header.format_major > kFormatMajor) {
          return Fail(ErrorCode::kUnsupportedVersion,
                      "recovering: " + path + ": a newer Deja wrote it; recover it with that one");
        }
        files.header.assign(AsText(payload));
        tail_path = header.tail.path;
        tail_id = header.tail.id;
        cgroup = {std::string(header.process.cgroup_file), header.process.oom_kills};
        if (finished) return {};
      } else if (frame.type == FrameType::kEvents) {
        TakeBatch(frame, payload);
      }
    } else if (frame.outcome == FrameOutcome::kTornTail) {
      torn_bytes += frame.size;
      break;
    } else if (frame.outcome == FrameOutcome::kCleanEnd) {
      break;
    }
  }
  if (files.events_end == 0) {
    return Fail(ErrorCode::kCorrupt,
                "recovering: " + path + ": it has no header, so nothing in it can be recovered");
  }
  return {};
}

Status FolderScan::ScanPayloads(const std::string& path, SegmentFile& segment) {
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<ReadFile> file, OpenReadFile(path));
  segment.facts.bytes = file->size();
  FrameReader reader(*file);
  DEJA_RETURN_IF_ERROR(reader.CheckMagic());
  std::vector<std::byte> payload;
  for (;;) {
    const FrameResult frame = reader.Next(payload);
    if (frame.outcome == FrameOutcome::kRecord) {
      segment.end = frame.offset + frame.size;
      TellProgress(segment.end);
      PayloadChunk chunk;
      if (frame.type != FrameType::kPayloadChunk || !ParseChunk(payload, chunk)) continue;
      segment.Note(chunk.step, segment.facts.number);
      payloads.Add(chunk, segment.facts.number, frame.offset);
    } else if (frame.outcome == FrameOutcome::kTornTail) {
      torn_bytes += frame.size;
      return {};
    } else if (frame.outcome == FrameOutcome::kCleanEnd) {
      segment.finished = true;
      return {};
    }
  }
}

Result<std::unique_ptr<TailReader>> OpenDeadTail(const FolderScan& scan,
                                                 const std::string& folder) {
  if (scan.tail_path.empty() || scan.tail_id.size() != 16) return nullptr;
  auto tail = TailReader::Open(scan.tail_path, scan.tail_id);
  if (!tail) {
    // It is gone, or its name belongs to another process by now.
    if (tail.error().code == ErrorCode::kNotFound || tail.error().code == ErrorCode::kForeign) {
      return nullptr;
    }
    return tail;
  }
  if ((*tail)->WriterAlive()) {
    return Fail(ErrorCode::kInvalidArgument, "recovering: " + folder + ": process " +
                                                 std::to_string((*tail)->identity().pid) +
                                                 " still writes to it; wait until it has ended");
  }
  return tail;
}

// Room on the disk for what a tail holds: as much as the job's budget leaves, and what the oldest
// segments of the folder take.
class Room {
 public:
  Room(const std::string& tail_path, RankWriter& writer, uint64_t next_log_seq)
      : ledger_(DiskLedger::OfTail(tail_path)),
        writer_(writer),
        is_child_(writer.folder().find(std::string("/") + kChildPrefix) != std::string::npos),
        bytes_before_(Bytes()),
        next_log_seq_(next_log_seq) {
    if (ledger_ == nullptr) return;
    ledger_->CountGone();  // what goes is taken from it
    room_ = ledger_->RoomForGone(is_child_);
  }
  ~Room() {
    if (ledger_ != nullptr)
      ledger_->AddOfGone(is_child_, static_cast<int64_t>(Bytes() - bytes_before_));
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  // Drops segments until it is there. False if it never will be: the part is to be left out.
  Result<bool> Make(const TailPayload& part) {
    if (ledger_ == nullptr) return true;
    while (Bytes() + part.size > bytes_before_ + room_) {
      const std::vector<SegmentFile>& segments = writer_.segments();
      const auto oldest = std::find_if(segments.begin(), segments.end() - 1,
                                       [](const auto& file) { return file.facts.marked == 0; });
      if (oldest != segments.end() - 1) {
        DEJA_RETURN_IF_ERROR(Drop(*oldest));
        continue;
      }
      // The newest one can go when there is a newer one.
      const SegmentFile& newest = segments.back();
      if (newest.facts.marked != 0 || !newest.has_chunks) return false;
      DEJA_RETURN_IF_ERROR(writer_.BeginSegment(newest.facts.number + 1, 0));
    }
    return true;
  }
  // Says that a part is not there, by the number of its segment, which may never have had a file.
  // What belongs to one that is marked, and so stays, is lost.
  Status LeaveOut(const TailPayload& part) {
    if (Contains(writer_.totals().dropped, part.segment)) return {};
    // What comes under that number from here on goes into a later one.
    if (writer_.segments().back().facts.number <= part.segment)
      DEJA_RETURN_IF_ERROR(writer_.AdvanceTo(part.segment + 1, 0));
    const std::vector<SegmentFile>& segments = writer_.segments();
    if (std::any_of(segments.begin(), segments.end(),
                    [&](const SegmentFile& file) { return file.facts.number == part.segment; })) {
      if (part.offset == 0) ++lost_;
      return {};
    }
    WindowChange change;
    change.what = static_cast<uint32_t>(WindowEvent::kDropped);
    change.first_segment = change.last_segment = part.segment;
    change.reason = kNoRoom;
    DEJA_RETURN_IF_ERROR(Say(change));
    writer_.LackSegment(part.segment);
    return {};
  }
  // How many payloads of marked segments were left out.
  [[nodiscard]] uint64_t lost() const { return lost_; }

 private:
  [[nodiscard]] uint64_t Bytes() const {
    return writer_.payload_file_bytes() + writer_.event_file_bytes();
  }
  static constexpr char kNoRoom[] = "disk budget";

  Status Say(const WindowChange& change) {
    const EventHead head{kLogThread, next_log_seq_++, MonotonicNs()};
    writer_.AddEvent(AsBytes(EncodeEventToString(head, change)));
    return writer_.WriteBatch();
  }
  Status Drop(const SegmentFile& segment) {
    const uint32_t number = segment.facts.number;
    DEJA_RETURN_IF_ERROR(Say(writer_.Dropping(segment, kNoRoom)));
    writer_.DropSegment(number);
    return {};
  }

  const std::unique_ptr<DiskLedger> ledger_;
  RankWriter& writer_;
  const bool is_child_;
  const uint64_t bytes_before_;
  uint64_t room_ = 0;
  uint64_t next_log_seq_;
  uint64_t lost_ = 0;
};

Status AddPayloads(const TailReader& tail, const ScannedPayloads& scanned, Room& room,
                   RankWriter& writer, uint64_t& added) {
  std::vector<std::byte> bytes;
  for (const TailPayload& part : tail.payloads()) {
    // An older segment may go before this one: no segment relies on another.
    const ScannedPayloads::BySegment pieces = scanned.Find(part.hash);
    const auto known = ScannedPayloads::NewestWhole(pieces);
    if (known && *known >= part.segment) continue;
    DEJA_ASSIGN_OR_RETURN(const bool fits, room.Make(part));
    if (!fits) {
      DEJA_RETURN_IF_ERROR(room.LeaveOut(part));
      continue;
    }
    // An event that names the segment finds it there or in a later one.
    if (part.segment > writer.segments().back().facts.number)
      DEJA_RETURN_IF_ERROR(writer.AdvanceTo(part.segment, 0));
    const auto there = pieces.find(writer.segments().back().facts.number);
    if (there != pieces.end()) {
      for (const auto& [offset, piece] : there->second.pieces)
        writer.Know(part.hash, there->second.total_size, offset, piece.size, piece.frame);
    }
    bytes.resize(part.size);
    DEJA_RETURN_IF_ERROR(tail.ReadPayload(part, bytes));
    DEJA_ASSIGN_OR_RETURN(
        const bool whole,
        writer.WritePayload({part.hash, part.total_size, part.offset, part.element_size, bytes,
                             part.step, 0, part.segment}));
    added += whole ? 1 : 0;
  }
  return {};
}

Status AddEvents(const TailReader& tail, FolderScan& scan, RankWriter& writer, uint64_t& added) {
  const size_t from_rings = tail.events().size() - tail.emergency_events();
  for (size_t i = 0; i < tail.events().size(); ++i) {
    Event event;
    if (!DecodeEvent(tail.events()[i], event)) continue;
    if (i < from_rings) {
      const auto last = scan.last_seq.find(event.thread);
      if (last != scan.last_seq.end() && event.seq <= last->second) continue;
    } else if (scan.last_batch.count({event.thread, event.seq}) != 0) {
      continue;
    }
    scan.NoteLosses(event);
    writer.AddEvent(tail.events()[i]);
    ++added;
    if (writer.batch_bytes() >= kBatchBytes) DEJA_RETURN_IF_ERROR(writer.WriteBatch());
  }
  return writer.WriteBatch();
}

uint64_t OomKillsSince(const CgroupCount& began) {
  const uint64_t now = began.file.empty() ? 0 : OomKills(began.file).value_or(0);
  return now > began.oom_kills ? now - began.oom_kills : 0;
}

Status FinishFinished(const std::string& folder, FolderScan& scan, const ProcessFate& fate) {
  if (!fate.known || scan.footer.fate.known) return {};
  DEJA_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file,
                        OpenAppendFile(folder + "/" + kEventsFile));
  FrameWriter frames(std::move(file));
  scan.footer.fate = fate;
  return frames.WriteFooter(scan.footer);
}

}  // namespace

void RemoveTail(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name.starts_with("deja-") && name.ends_with(kTailNameSuffix)) unlink(path.c_str());
}

Result<RecoveryReport> RecoverRank(const std::string& folder, const ProcessFate& fate,
                                   const std::function<void(uint64_t)>& progress) {
  const ScopedSignalBlock no_signals;  // SIGXFSZ
  RecoveryReport report;
  report.folder = folder;
  const FolderLock alone(folder);
  FolderScan scan(&progress);
  DEJA_RETURN_IF_ERROR(scan.Scan(folder));
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<TailReader> tail, OpenDeadTail(scan, folder));
  if (tail == nullptr && !scan.finished) {
    // Its process may have finished the folder, and removed the tail, since it was read.
    scan = FolderScan(&progress);
    DEJA_RETURN_IF_ERROR(scan.Scan(folder));
  }
  report.was_finished = scan.finished;
  if (scan.finished) {
    DEJA_RETURN_IF_ERROR(FinishFinished(folder, scan, fate));
  } else {
    report.torn_bytes_cut = scan.torn_bytes;
    // What a process died of in the middle of making.
    for (const std::string& name : NamesIn(folder))
      if (name.ends_with(".next")) unlink((folder + "/" + name).c_str());
    Footer footer = scan.files.totals;
    DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<RankWriter> writer,
                          RankWriter::Continue(folder, std::move(scan.files)));
    scan.files.totals = footer;
    // Counts what the end of the files takes, too.
    std::optional<Room> room;
    if (tail != nullptr) {
      const auto last = scan.last_seq.find(kLogThread);
      room.emplace(scan.tail_path, *writer, last == scan.last_seq.end() ? 0 : last->second + 1);
      DEJA_RETURN_IF_ERROR(
          AddPayloads(*tail, scan.payloads, *room, *writer, report.payloads_from_tail));
      DEJA_RETURN_IF_ERROR(AddEvents(*tail, scan, *writer, report.events_from_tail));
    }
    footer = Footer{};
    footer.events_lost = scan.files.totals.events_lost;
    footer.payloads_lost = scan.files.totals.payloads_lost + (room ? room->lost() : 0);
    footer.swept = 1;
    if (tail != nullptr) footer.pressure = tail->pressure();
    footer.fate = fate;
    // With a tail, this is the machine that the process ran on.
    if (tail != nullptr) footer.oom_kills = OomKillsSince(scan.cgroup);
    RecoveredElements counted(scan.payloads, writer->segments());
    CountElements(counted, footer);
    RecoveredElements listed(scan.payloads, writer->segments());
    DEJA_RETURN_IF_ERROR(writer->Finish(footer, &listed));
    writer->ReleaseReserve();
  }
  if (tail != nullptr) RemoveTail(scan.tail_path);
  return report;
}

// ---- What belongs to no rank ----------------------------------------------------------------

namespace {

// "pending-<pid>-<nonce>" without a tail: the pid is all there is to tell whether it is in use.
bool PendingIsInUse(const std::string& process_name) {
  ProcessIdentity identity = ThisProcess();
  identity.pid = static_cast<uint32_t>(strtoul(process_name.c_str(), nullptr, 10));
  identity.start_ticks = 0;
  return identity.pid == 0 || IsAlive(identity);
}

void RemovePendingFolder(const std::string& folder) {
  for (const std::string& name : NamesIn(folder)) {
    const bool ours = name.starts_with("events.deja") || name.starts_with("payloads");
    if (ours) unlink((folder + "/" + name).c_str());
  }
  rmdir(folder.c_str());
}

// The 32 digits of "deja-JOB-WHAT.tail"; empty: it is no such name.
std::string JobOfName(const std::string& name) {
  constexpr size_t kDigits = 32;
  const size_t begin = name.find('-') + 1;
  const std::string job = name.substr(begin, kDigits);
  const bool is_id = job.find_first_not_of("0123456789abcdef") == std::string::npos;
  const bool fits = job.size() == kDigits && is_id && name.starts_with(TailNamePrefix(job)) &&
                    name.ends_with(kTailNameSuffix);
  return fits ? job : std::string();
}

}  // namespace

int RemoveOldJobMemory(const std::string& directory, uint64_t least_age_s) {
  std::set<std::string> kept;                               // jobs
  std::vector<std::pair<std::string, std::string>> common;  // job and name
  const auto now = static_cast<uint64_t>(time(nullptr));
  for (const std::string& name : NamesIn(directory)) {
    const std::string job = JobOfName(name);
    if (job.empty()) continue;
    struct stat info {};
    const bool is_common = name == SharedPiecesName(job) || name == DiskLedgerName(job) ||
                           name == WindowBoardName(job) || name == JobPipesName(job);
    const bool is_old = lstat((directory + "/" + name).c_str(), &info) == 0 &&
                        S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
                        static_cast<uint64_t>(info.st_ctime) + least_age_s <= now;
    if (is_common && is_old)
      common.emplace_back(job, name);
    else
      kept.insert(job);
  }
  int removed = 0;
  for (const auto& [job, name] : common)
    if (kept.count(job) == 0 && unlink((directory + "/" + name).c_str()) == 0) ++removed;
  return removed;
}

Result<int> RemoveOrphanTails(const std::string& trace_dir, const std::string& job_id) {
  std::set<std::string> directories = {"/dev/shm", trace_dir};
  if (const char* chosen = getenv(env::kTailDir.name); chosen != nullptr && *chosen != '\0') {
    directories.insert(chosen);
  }
  std::set<std::string> pending;  // process names
  for (const std::string& name : NamesIn(trace_dir)) {
    if (name.starts_with(kPendingPrefix)) pending.insert(name.substr(strlen(kPendingPrefix)));
  }
  const std::string prefix = TailNamePrefix(job_id);
  const std::string common[] = {SharedPiecesName(job_id), DiskLedgerName(job_id),
                                WindowBoardName(job_id), JobPipesName(job_id)};
  std::set<std::string> in_use;  // process names
  int removed = 0;
  for (const std::string& directory : directories) {
    for (const std::string& name : NamesIn(directory)) {
      if (!name.starts_with(prefix) || !name.ends_with(kTailNameSuffix)) continue;
      if (std::find(std::begin(common), std::end(common), name) != std::end(common)) continue;
      const std::string process_name =
          name.substr(prefix.size(), name.size() - prefix.size() - strlen(kTailNameSuffix));
      const std::string path = directory + "/" + name;
      const auto tail = TailReader::Open(path, "");
      // One that cannot be read is being made, or its process died as it made it.
      const bool alive = tail ? (*tail)->WriterAlive() : PendingIsInUse(process_name);
      // A folder still pending says that its process died before it became a rank.
      const bool of_rank =
          tail && (*tail)->identity().state == TailState::kRank && pending.count(process_name) == 0;
      if (alive || of_rank) {
        in_use.insert(process_name);
      } else if (unlink(path.c_str()) == 0) {
        ++removed;
      }
    }
  }
  // What they are for ends with the last process; who still uses them has them mapped.
  for (const std::string& directory : directories) {
    for (const std::string& name : common) {
      if (in_use.empty()) unlink((directory + "/" + name).c_str());
    }
  }
  for (const std::string& process_name : pending) {
    if (in_use.count(process_name) != 0 || PendingIsInUse(process_name)) continue;
    RemovePendingFolder(trace_dir + "/" + kPendingPrefix + process_name);
  }
  return removed;
}

}  // namespace deja::format

// Recording: the recording of one process: its log, its events, its facts, and a part for each room
// that keeps something of its own.
//
// One object per process and never destroyed: hooks come before constructors and after destructors.
// A fork child gets a new one and leaves its parent's alone. Parts synchronise themselves.
#ifndef DEJA_RECORDER_CORE_RECORDING_H_
#define DEJA_RECORDER_CORE_RECORDING_H_

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "common/secrets/secrets.h"
#include "format/log/rank_log.h"
#include "recorder/core/config.h"
#include "recorder/events/event_writer.h"
#include "recorder/facts/process_facts.h"

namespace deja::recorder {

// Makes the log of a process; tests bring their own.
using LogFactory = Result<std::unique_ptr<format::RankLog>> (*)(const format::RankLogOptions&);

// The rooms that keep something of their own for each recording. A part is a type with `kPart`, one
// of these; recorder/assembly/ makes them.
enum class RecordingPart : uint8_t { kNccl, kMpi, kFiles, kInputs, kSteps, kCount };

class Recording {
 public:
  Recording(const Config& recorded_config, LogFactory make_log);

  // What the room of `Part` keeps.
  template <typename Part>
  Part& Of() {
    return *static_cast<Part*>(parts_[static_cast<size_t>(Part::kPart)]);
  }

  // Makes the log and hands it what has been staged. False if that failed now or before; the
  // recording is off then.
  bool GoLive();
  // Makes this process a rank of the trace: going live, and the rank's folder. `rank`, `nranks`: of
  // the communicator that is being made. Nothing happens when it is a rank already.
  void BecomeRank(int rank, int nranks);
  // Gives a process that may be a rank's child a folder of its own. Nothing happens when it has
  // one, or is no child.
  void BecomeChild();
  // In a forked child, of its parent's recording, as the fork has left it; on the thread that has
  // forked, before that has an event of its own.
  void BeForked();
  // Call it on the child's own recording, before anything else.
  void SetForkedFrom(Recording* parents) { forked_from_ = parents; }
  // Going live before there is a communicator, if too much has been staged.
  void RelieveStaging() {
    if (!writer.live() && writer.staged_bytes() > EventWriter::kMaxStagedBytes) GoLive();
  }

  // Keeps bytes under their hash, at any level.
  format::Placed KeepPayload(const Hash128& hash, std::span<const std::byte> bytes,
                             uint32_t element_size, uint32_t series = 0);

  // True once recording has failed: one line has said so, and calls are only forwarded.
  [[nodiscard]] bool off() const { return off_.load(std::memory_order_relaxed); }
  // It may be a rank's child.
  [[nodiscard]] bool is_child() const { return is_child_; }
  [[nodiscard]] bool is_rank() const { return is_rank_.load(std::memory_order_acquire); }
  // The log if there is one already.
  [[nodiscard]] format::RankLog* log() const { return log_.load(std::memory_order_acquire); }
  // True in this process, false in a vfork child that borrows its memory.
  [[nodiscard]] bool IsThisProcess() const;
  [[nodiscard]] pid_t pid() const { return pid_; }

  Config config;
  SecretRule secrets{config.keep_env, config.mask};
  ProcessFacts facts;
  EventWriter writer;
  std::atomic<bool> exit_recorded{false};
  // A thread records a fatal signal, and gives its device time for that. Until it is done, the
  // other threads must not see what happens after the signal.
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> steps{0};  // that have begun

 protected:
  template <typename Part>
  void SetPart(Part& part) {
    parts_[static_cast<size_t>(Part::kPart)] = &part;
  }

 private:
  void FillHeader(format::TraceHeader& header);

  // Called once this process is a rank. What its parents had staged until the fork gets a folder of
  // its own, with which a replay of the rank begins. `path`: the folder of this process, or of the
  // process that the recording is about.
  void KeepLifeBefore(std::string_view path);
  void KeepStaged(std::string_view path);

  void* parts_[static_cast<size_t>(RecordingPart::kCount)] = {};
  const LogFactory make_log_;
  Recording* forked_from_ = nullptr;
  const pid_t pid_;
  SpinLock lock_;  // of the two steps below; held while they are made, so that others wait for them
  std::atomic<format::RankLog*> log_{nullptr};
  std::atomic<bool> is_rank_{false};
  bool is_child_ = false;  // it may be a rank's, and becomes none by itself
  std::array<char, 16> job_id_{};
  std::atomic<bool> has_folder_{false};
  std::atomic<bool> off_{false};
};

// One line on stderr, without stdio: "deja: TEXT".
void SayOnce(std::string_view text);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_CORE_RECORDING_H_

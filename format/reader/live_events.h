// LiveEvents: the events of a recording while its process runs, each handed out once.
//
// Keeps its place in the file of events and what it has seen of each thread. So a call costs what
// has come since the last one. Reads the process's tail too, where it is on this machine. Payload
// files are not touched, and nothing is changed or locked. One thread.
#ifndef DEJA_FORMAT_READER_LIVE_EVENTS_H_
#define DEJA_FORMAT_READER_LIVE_EVENTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/os/file.h"
#include "common/result.h"
#include "format/tail/tail_reader.h"
#include "format/wire/frame_format.h"
#include "format/wire/frame_reader.h"
#include "format/wire/messages.h"

namespace deja::format {

class LiveEvents {
 public:
  // Reads the header of the recording in `folder`. Errors: there is none yet, or it cannot be read.
  static Result<std::unique_ptr<LiveEvents>> Open(const std::string& folder);

  // Views live as long as this.
  [[nodiscard]] const TraceHeader& header() const { return header_; }

  // Its views are valid during the call.
  using Sink = std::function<void(const Event& event)>;
  // Hands out what is new: each thread's events in its order, threads interleaved. An error if the
  // file is gone or another one; a new LiveEvents then starts from its beginning.
  Status Poll(const Sink& sink);

  // The recording has a footer.
  [[nodiscard]] bool is_finished() const { return is_finished_; }
  // The last Poll could read the tail of a process that lives.
  [[nodiscard]] bool has_live_tail() const { return has_live_tail_; }
  // From the footer, once there is one.
  [[nodiscard]] const Footer& footer() const { return footer_; }
  // What could not be read first; empty: nothing.
  [[nodiscard]] const std::string& damage() const { return damage_; }
  // Frames that could not be read so far.
  [[nodiscard]] uint64_t damaged_frames() const { return damaged_frames_; }

 private:
  explicit LiveEvents(std::string folder) : folder_(std::move(folder)) {}
  Status ReadHeader();
  Status ReadFrames(const Sink& sink);
  void TakeBatch(const FrameResult& frame, const std::string& file, const Sink& sink);
  void Damaged(const std::string& file, uint64_t offset, const std::string& what);
  void TakeTail(const TailReader& tail, const Sink& sink);
  void TakeInOrder(const Event& event, const Sink& sink);

  std::string folder_;
  std::vector<std::byte> header_bytes_;
  TraceHeader header_;
  uint64_t position_ = kMagicBytes;  // of the next frame in the file
  std::vector<std::byte> payload_;
  std::unordered_map<uint32_t, uint64_t> next_seq_;      // by thread
  std::set<std::pair<uint32_t, uint64_t>> emergencies_;  // handed out: thread and seq
  std::vector<std::byte> footer_bytes_;
  Footer footer_;
  bool is_finished_ = false;
  bool has_live_tail_ = false;
  uint64_t damaged_frames_ = 0;
  std::string damage_;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_READER_LIVE_EVENTS_H_

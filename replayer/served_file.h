// ServedFile: what descriptors of a file that the program has opened to read lead to in a replay.
//
// Where the file's bytes come from the trace, and the replay reads a range that the recorded run
// did not read, it says so. Once the process has forked, others may have the same open file, and
// who reads first is not known: then reads and relative seeks happen where they happened in the
// recorded run (preload/shared_moves.h), or else where this process had left the file. The
// kernel's position follows, for programs that inherit the descriptor.
//
// From a pool: a descriptor may be in use while it is closed. Any thread; no locks.
#ifndef DEJA_REPLAYER_SERVED_FILE_H_
#define DEJA_REPLAYER_SERVED_FILE_H_

#include <atomic>
#include <cstdint>
#include <string_view>

#include "preload/hooks/fd_table.h"
#include "replayer/session.h"

namespace deja::replayer {

class ServedFile final : public preload::FdObject {
 public:
  // `path`: as the recording names it. `is_from_trace`: its bytes are. Null: there is no memory.
  static ServedFile* Open(std::string_view path, bool is_from_trace);

  int64_t AfterRead(int fd, const void* data, size_t size, int64_t offset, size_t more) override;
  void AfterSeek(int64_t position, int64_t offset, int whence) override;
  bool AnswerRead(preload::Transfer& transfer) override;
  bool AnswerSeek(int fd, int64_t offset, int whence, int64_t& position) override;
  void OnUnused(int fd) override;

  // The recording that counts; another one's after a fork, null if there is none.
  static void SetSession(Session* session);
  // Once: from now on forks are counted.
  static void WatchForks();
  // A fork that the replay does not make.
  static void CountFork();

 private:
  ServedFile() : FdObject(Kind::kFile, true) {}
  // Others may move the file, and the recording says where moves found it.
  [[nodiscard]] bool IsShared(const Session* session) const;
  // What was recorded of the move with this number; null: nothing.
  const RecordedInput* RecordedMove(Session& session, uint32_t number) const;
  void ReadAt(preload::Transfer& transfer, int64_t position, bool is_recorded);
  static void ReadRecorded(preload::Transfer& transfer, Session& session,
                           const RecordedInput& move, int64_t& after);
  void CheckRange(Session& session, int64_t offset, size_t size) const;

  const char* path_ = "";  // never freed
  uint64_t key_ = 0;
  bool is_from_trace_ = false;
  uint32_t forks_ = 0;  // of the process when it was opened
  std::atomic<int64_t> position_{0};
  std::atomic<uint32_t> moves_{0};
  ServedFile* next_free_ = nullptr;
};

// The first byte of [begin, end) that is in no range of `file` that is in the trace; `end` if all
// are.
uint64_t FirstUnread(const RecordedFile& file, uint64_t begin, uint64_t end);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_SERVED_FILE_H_

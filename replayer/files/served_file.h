// ServedFile: what descriptors of an opened file lead to in a replay, if the program reads the
// file. ServedOutput: the same for a file that it may write to.
//
// Their position is served (served_position.h). Where the bytes of a file come from the trace, it
// reports a read of a range that the recorded run did not read.
//
// From pools: a descriptor may be in use while it is closed. Any thread; no locks across a call.
#ifndef DEJA_REPLAYER_FILES_SERVED_FILE_H_
#define DEJA_REPLAYER_FILES_SERVED_FILE_H_

#include <cstdint>
#include <string_view>

#include "preload/engine/fd_table.h"
#include "replayer/core/session.h"
#include "replayer/files/served_position.h"

namespace deja::replayer {

class ServedFile final : public preload::FdObject {
 public:
  ServedFile() : FdObject(Kind::kFile, true) {}

  // `path`: as the recording names it. `key`, `open`: as of ServedPosition. `is_from_trace`: its
  // bytes are.
  static ServedFile* Open(std::string_view path, uint64_t key, uint32_t open, bool is_from_trace);

  int64_t AfterRead(int fd, const void* data, size_t size, int64_t offset, size_t more) override;
  void AfterSeek(int64_t position, int64_t offset, int whence) override;
  bool AnswerRead(preload::Transfer& transfer) override;
  bool AnswerSeek(int fd, int64_t offset, int whence, int64_t& position) override;
  void OnUnused(int fd) override;

  // The recording that counts; another one's after a fork, null if there is none.
  static void SetSession(Session* session);

 private:
  friend class ServedPool;
  void CheckRange(Session& session, int64_t offset, size_t size) const;

  const char* path_ = "";  // never freed
  bool is_from_trace_ = false;
  ServedPosition position_;
  ServedFile* next_free_ = nullptr;
};

class ServedOutput final : public preload::FdObject {
 public:
  ServedOutput() : FdObject(Kind::kOwnFile, true) {}

  static ServedOutput* Open(uint64_t key, uint32_t open);

  void OnRead(preload::Transfer& transfer) override;
  void OnWrite(preload::Transfer& transfer) override;
  void AfterSeek(int64_t position, int64_t offset, int whence) override;
  bool AnswerSeek(int fd, int64_t offset, int whence, int64_t& position) override;
  void OnUnused(int fd) override;

 private:
  friend class ServedPool;

  ServedPosition position_;
  ServedOutput* next_free_ = nullptr;
};

// The first byte of [begin, end) that is in no range of `file` that is in the trace; `end` if all
// are.
uint64_t FirstUnread(const RecordedFile& file, uint64_t begin, uint64_t end);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FILES_SERVED_FILE_H_

// OpenedOutput: what descriptors lead to by which this process may write to a file. Follows where
// the file stands, which processes have together once one has forked (shared_position.h).
//
// From a pool. Any thread; no locks across a call.
#ifndef DEJA_RECORDER_FILES_OPENED_OUTPUT_H_
#define DEJA_RECORDER_FILES_OPENED_OUTPUT_H_

#include <cstdint>

#include "preload/engine/fd_table.h"
#include "recorder/events/object_pool.h"
#include "recorder/files/own_files.h"
#include "recorder/files/shared_position.h"

namespace deja::recorder {

class OpenedOutput final : public preload::FdObject {
 public:
  OpenedOutput() : FdObject(Kind::kOwnFile) {}

  // `key`, `open`: as of SharedPosition. Null: there is no room.
  static OpenedOutput* Open(OwnFile& file, uint64_t key, uint32_t open);

  void OnRead(preload::Transfer& transfer) override;
  void OnWrite(preload::Transfer& transfer) override;
  void AfterSeek(int64_t position, int64_t offset, int whence) override;
  void OnUnused(int fd) override;

 private:
  friend class ObjectPool<OpenedOutput>;
  void AfterMove(const preload::Transfer& transfer, SharedPosition::Move move);

  OwnFile* file_ = nullptr;
  SharedPosition position_;
  OpenedOutput* next_free_ = nullptr;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FILES_OPENED_OUTPUT_H_

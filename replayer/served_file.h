// ServedFile: what descriptors of an input file lead to in a replay that has its bytes in the
// trace. When the replay reads a range that the recorded run did not read, it says so.
//
// Made by InputServer, never freed (a descriptor may be in use while it is closed). Any thread.
#ifndef DEJA_REPLAYER_SERVED_FILE_H_
#define DEJA_REPLAYER_SERVED_FILE_H_

#include <cstdint>
#include <string>

#include "preload/hooks/fd_table.h"
#include "replayer/session.h"

namespace deja::replayer {

class ServedFile final : public preload::FdObject {
 public:
  explicit ServedFile(std::string path) : FdObject(Kind::kFile), path_(std::move(path)) {}

  void AfterRead(int fd, const void* data, size_t size, int64_t offset) override;

  // The recording that counts; another one's after a fork, null if there is none.
  static void SetSession(Session* session);

 private:
  const std::string path_;
};

// The first byte of [begin, end) that is in no range of `file` that is in the trace; `end` if all
// are.
uint64_t FirstUnread(const RecordedFile& file, uint64_t begin, uint64_t end);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_SERVED_FILE_H_

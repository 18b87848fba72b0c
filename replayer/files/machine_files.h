// MachineServer: what files about the machine said in the recorded run
// (preload/files/machine_files.h), as files that the program can open, map and read in any way.
//
// Each recorded answer becomes a file or folder below SCRATCH/machine/NUMBER/<its name>, when it is
// first asked for. A thread's n-th open gets what its n-th open got; a thread that opens more often
// gets the last answer again, one that never did another thread's. What the recording does not know
// is read from this machine.
//
// Owner: the session. Any thread. Errors are the recorded ones; where an answer cannot be written,
// the real file is used.
#ifndef DEJA_REPLAYER_FILES_MACHINE_FILES_H_
#define DEJA_REPLAYER_FILES_MACHINE_FILES_H_

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "api/libc_table.h"
#include "preload/calls/file_calls.h"

namespace deja::replayer {

class Session;
struct RecordedInput;
struct ThreadState;

// Where the files are, below a replay's scratch folder.
inline constexpr std::string_view kMachineFolder = "/machine/";

// As preload::Engine::MapPath.
class MachineServer {
 public:
  const char* Map(Session& session, ThreadState& thread, int live_pid, int dirfd, const char* path,
                  preload::FileUse use, std::span<char> buffer);

 private:
  // The recorded answer for this open of the thread, or null.
  static const RecordedInput* Find(Session& session, ThreadState& thread, api::LibcApi api,
                                   uint64_t key, bool counts);
  // The path of the answer; empty if it cannot be made.
  std::string Make(Session& session, const RecordedInput& answer, std::string_view name);

  std::mutex mutex_;
  std::map<const RecordedInput*, std::string> made_;  // their paths
};

// As preload::Engine::UnmapPath, for those files.
size_t UnmapMachinePath(std::string_view scratch, char* path, size_t size);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FILES_MACHINE_FILES_H_

// FenceObjects: System V shared memory, message queues and semaphores, and POSIX message queues, of
// replayed programs. Their names are the replay's own, so they never meet another program's, and
// they go with the replay.
//
// Owner: FenceAnswers; its thread. Results are those of system calls: negative errors.
#ifndef DEJA_CLI_FENCE_FENCE_OBJECTS_H_
#define DEJA_CLI_FENCE_FENCE_OBJECTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace deja::cli {

class FenceObjects {
 public:
  FenceObjects() = default;
  ~FenceObjects();
  FenceObjects(const FenceObjects&) = delete;
  FenceObjects& operator=(const FenceObjects&) = delete;

  enum class Kind : uint8_t { kMemory, kMessages, kSemaphores };

  // As shmget, msgget (without a size) and semget.
  int64_t Get(Kind kind, int key, uint64_t size, int flags);
  // Whether the replay has made it.
  [[nodiscard]] bool IsOwn(Kind kind, int id) const;
  // It is being removed: its key names another one from now on.
  void Forget(Kind kind, int id);

  // As mq_open's system call, whose name has no slash; a descriptor of ours.
  int64_t OpenQueue(const std::string& name, int flags, unsigned mode, void* attributes);
  int64_t RemoveQueue(const std::string& name);

 private:
  std::string QueueName(const std::string& name);

  struct Objects {
    std::map<int, int> by_key;
    std::set<int> ids;
  };
  Objects objects_[3];
  std::string prefix_;
  std::set<std::string> queues_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_FENCE_FENCE_OBJECTS_H_

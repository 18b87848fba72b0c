#include "cli/fence/fence_objects.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace deja::cli {
namespace {

constexpr int kPermissions = 0777;

int MakeObject(FenceObjects::Kind kind, uint64_t size, int permissions) {
  switch (kind) {
    case FenceObjects::Kind::kMemory:
      return shmget(IPC_PRIVATE, size, permissions);
    case FenceObjects::Kind::kMessages:
      return msgget(IPC_PRIVATE, permissions);
    case FenceObjects::Kind::kSemaphores:
      return semget(IPC_PRIVATE, static_cast<int>(size), permissions);
  }
  return -1;
}

}  // namespace

FenceObjects::~FenceObjects() {
  for (const int id : objects_[static_cast<int>(Kind::kMemory)].ids) shmctl(id, IPC_RMID, nullptr);
  for (const int id : objects_[static_cast<int>(Kind::kMessages)].ids)
    msgctl(id, IPC_RMID, nullptr);
  for (const int id : objects_[static_cast<int>(Kind::kSemaphores)].ids) semctl(id, 0, IPC_RMID);
  for (const std::string& name : queues_) mq_unlink(("/" + name).c_str());
}

int64_t FenceObjects::Get(Kind kind, int key, uint64_t size, int flags) {
  Objects& objects = objects_[static_cast<int>(kind)];
  if (const auto known = objects.by_key.find(key);
      key != IPC_PRIVATE && known != objects.by_key.end())
    return (flags & IPC_CREAT) != 0 && (flags & IPC_EXCL) != 0 ? -EEXIST : known->second;
  if (key != IPC_PRIVATE && (flags & IPC_CREAT) == 0) return -ENOENT;
  const int id = MakeObject(kind, size, flags & kPermissions);
  if (id < 0) return -errno;
  objects.ids.insert(id);
  if (key != IPC_PRIVATE) objects.by_key[key] = id;
  return id;
}

bool FenceObjects::IsOwn(Kind kind, int id) const {
  return objects_[static_cast<int>(kind)].ids.count(id) != 0;
}

void FenceObjects::Forget(Kind kind, int id) {
  Objects& objects = objects_[static_cast<int>(kind)];
  std::erase_if(objects.by_key, [&](const auto& entry) { return entry.second == id; });
  objects.ids.erase(id);
}

std::string FenceObjects::QueueName(const std::string& name) {
  if (prefix_.empty()) prefix_ = fmt::format("deja-{}-", getpid());
  return prefix_ + name;
}

int64_t FenceObjects::OpenQueue(const std::string& name, int flags, unsigned mode,
                                void* attributes) {
  const std::string own = QueueName(name);
  const long queue = syscall(SYS_mq_open, own.c_str(), flags, mode, attributes);
  if (queue < 0) return -errno;
  queues_.insert(own);
  return queue;
}

int64_t FenceObjects::RemoveQueue(const std::string& name) {
  const std::string own = QueueName(name);
  if (syscall(SYS_mq_unlink, own.c_str()) != 0) return -errno;
  queues_.erase(own);
  return 0;
}

}  // namespace deja::cli

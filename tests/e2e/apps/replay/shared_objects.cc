// Shared memory and semaphores with names, as data loaders use them between processes.
//
//   replay_shared_objects NAME    leaves the memory NAME behind, with one count more in it each
//   time
#include <fcntl.h>
#include <nccl.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

const char* Outcome(bool good) {
  return good ? "good" : std::strerror(errno);
}

void Memory(const std::string& name) {
  int fd = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  if (fd < 0) return (void)std::printf("memory: %s\n", std::strerror(errno));
  ftruncate(fd, 4096);
  auto* count = static_cast<int*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  close(fd);
  // The child sees the same memory, by its name.
  pid_t child = fork();
  if (child == 0) {
    int again = shm_open(name.c_str(), O_RDWR, 0);
    auto* same =
        static_cast<int*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0));
    ++*same;
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  std::printf("memory: %d\n", *count);
  std::printf("no memory: %s\n", Outcome(shm_open("/no-such-memory-of-deja", O_RDWR, 0) >= 0));
}

void Semaphores(const std::string& name) {
  sem_t* one = sem_open(name.c_str(), O_CREAT | O_EXCL, 0600, 0U);
  std::printf("new: %s\n", Outcome(one != SEM_FAILED));
  if (one == SEM_FAILED) return;
  std::printf("same: %d\n", sem_open(name.c_str(), 0) == one);
  std::printf("again: %s\n",
              Outcome(sem_open(name.c_str(), O_CREAT | O_EXCL, 0600, 0U) != SEM_FAILED));
  pid_t child = fork();
  if (child == 0) {
    sem_t* same = sem_open(name.c_str(), 0);
    _exit(same != SEM_FAILED && sem_post(same) == 0 ? 0 : 1);
  }
  sem_wait(one);
  int status = -1;
  waitpid(child, &status, 0);
  std::printf("posted: %d\n", status);
  std::printf("closed: %s %s\n", Outcome(sem_close(one) == 0), Outcome(sem_close(one) == 0));
  std::printf("removed: %s\n", Outcome(sem_unlink(name.c_str()) == 0));
  std::printf("removed again: %s\n", Outcome(sem_unlink(name.c_str()) == 0));
  std::printf("bad name: %s\n", Outcome(sem_open("/a/b", O_CREAT, 0600, 0U) != SEM_FAILED));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  ncclGetUniqueId(&id);
  if (ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess) return 1;
  Memory(std::string("/") + argv[1]);
  Semaphores(std::string("/") + argv[1]);
  ncclCommDestroy(comm);
  return 0;
}

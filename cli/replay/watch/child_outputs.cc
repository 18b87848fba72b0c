#include "cli/replay/watch/child_outputs.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "format/scratch/scratch_names.h"

namespace deja::cli {
namespace {

constexpr size_t kPiece = 64 << 10;

void WriteAll(int fd, const char* data, size_t size) {
  while (size != 0) {
    const ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    data += n;
    size -= static_cast<size_t>(n);
  }
}

// What there is in a FIFO that does not block. `to`: -1: nowhere.
void Drain(int from, int to) {
  static thread_local char piece[kPiece];
  for (;;) {
    const ssize_t n = read(from, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    if (to >= 0) WriteAll(to, piece, static_cast<size_t>(n));
  }
}

}  // namespace

bool ChildOutputs::MakeFifo(const std::string& path, int& reads, int& writes) {
  if (mkfifo(path.c_str(), 0600) != 0) return false;
  reads = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (reads < 0) return false;
  open_.push_back(reads);
  // Kept open, so that no reader finds an end before this object has one.
  writes = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (writes < 0) return false;
  open_.push_back(writes);
  return true;
}

Result<std::unique_ptr<ChildOutputs>> ChildOutputs::Make(const std::string& scratch,
                                                         bool all_to_stderr) {
  std::unique_ptr<ChildOutputs> made(new ChildOutputs(all_to_stderr));
  int ignored = -1;
  for (size_t i = 0; i < 2; ++i)
    if (!made->MakeFifo(scratch + format::kDroppedOutputs[i], made->dropped_[i],
                        made->of_rank_[i]) ||
        !made->MakeFifo(scratch + format::kShownOutputs[i], made->shown_[i], ignored))
      return FailErrno("making FIFOs in " + scratch, errno);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return FailErrno("starting the replay", errno);
  made->is_stopped_ = ends[0];
  made->stop_ = ends[1];
  made->open_.insert(made->open_.end(), {ends[0], ends[1]});
  // Signals are the main thread's.
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  made->copier_ = std::thread([self = made.get()] { self->Copy(); });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return made;
}

void ChildOutputs::Copy() {
  const int to[] = {all_to_stderr_ ? STDERR_FILENO : STDOUT_FILENO, STDERR_FILENO};
  for (bool stopped = false; !stopped;) {
    pollfd waits[] = {{is_stopped_, POLLIN, 0},
                      {dropped_[0], POLLIN, 0},
                      {dropped_[1], POLLIN, 0},
                      {shown_[0], POLLIN, 0},
                      {shown_[1], POLLIN, 0}};
    if (poll(waits, std::size(waits), -1) < 0 && errno != EINTR) return;
    stopped = waits[0].revents != 0;
    for (size_t i = 0; i < 2; ++i) {
      Drain(dropped_[i], -1);
      Drain(shown_[i], to[i]);
    }
  }
}

ChildOutputs::~ChildOutputs() {
  if (copier_.joinable()) {
    WriteAll(stop_, "", 1);
    copier_.join();
  }
  for (const int fd : open_) close(fd);
}

}  // namespace deja::cli

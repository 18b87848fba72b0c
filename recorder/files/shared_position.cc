#include "recorder/files/shared_position.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "api/libc_table.h"
#include "common/runtime/errno_keeper.h"
#include "digest/digest.h"
#include "preload/meet/shared_moves.h"
#include "recorder/core/recording.h"
#include "recorder/events/mapped_memory.h"
#include "recorder/files/input_files.h"

namespace deja::recorder {
namespace {

constinit std::atomic<uint32_t> g_forks{0};

// What lies before where a file stands, in which a read or a write is looked for.
constexpr int64_t kWindow = 1 << 20;

// The bytes of a file, by a descriptor that may read.
class Content {
 public:
  explicit Content(int fd) : fd_(fd) {
    if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY) return;
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    fd_ = own_ = open(link, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  }
  ~Content() {
    if (own_ >= 0) close(own_);
  }
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

  // They are these from `begin` on.
  [[nodiscard]] bool Holds(int64_t begin, std::span<const std::byte> data) const {
    std::byte piece[16 << 10];
    if (begin < 0) return false;
    while (!data.empty()) {
      const ssize_t n = pread(fd_, piece, std::min(data.size(), sizeof piece), begin);
      if (n <= 0 || std::memcmp(piece, data.data(), static_cast<size_t>(n)) != 0) return false;
      data = data.subspan(static_cast<size_t>(n));
      begin += n;
    }
    return true;
  }

  // The last place before `end` where they are these; -1: there is none in the window.
  [[nodiscard]] int64_t FindBefore(int64_t end, std::span<const std::byte> data) const {
    const auto size = static_cast<int64_t>(data.size());
    if (size > kWindow) return -1;
    constexpr size_t kRoom = 2 * kWindow;
    auto* window = static_cast<std::byte*>(MapZeroed(kRoom));
    if (window == nullptr) return -1;
    const int64_t begin = std::max<int64_t>(end - kWindow - size, 0);
    const ssize_t n = pread(fd_, window, static_cast<size_t>(end - begin), begin);
    int64_t found = -1;
    for (int64_t at = n - size; at >= 0 && found < 0; --at)
      if (std::memcmp(window + at, data.data(), data.size()) == 0) found = begin + at;
    munmap(window, kRoom);
    return found;
  }

 private:
  int fd_;
  int own_ = -1;
};

// Where what was read or written stands: at `likely`, at `expected`, or somewhere before `end`; -1:
// not known. What reads as the same is as good.
int64_t FindMoved(int fd, std::span<const std::byte> data, int64_t likely, int64_t expected,
                  int64_t end) {
  if (data.empty()) return likely;
  const Content content(fd);
  if (content.Holds(likely, data)) return likely;
  return content.Holds(expected, data) ? expected : content.FindBefore(end, data);
}

}  // namespace

void CountForkOfInputs() {
  g_forks.fetch_add(1, std::memory_order_relaxed);
}

void SharedPosition::Begin(uint64_t key, uint32_t open) {
  position_.store(0, std::memory_order_relaxed);
  moves_.store(0, std::memory_order_relaxed);
  told_.store(0, std::memory_order_relaxed);
  contended_.store(false, std::memory_order_relaxed);
  key_ = key;
  open_ = open;
  forks_ = g_forks.load(std::memory_order_relaxed);
}

bool SharedPosition::IsShared() const {
  return forks_ != g_forks.load(std::memory_order_relaxed);
}

bool SharedPosition::IsTold() const {
  return told_.load(std::memory_order_relaxed) == InputGeneration();
}

// The file's position is asked afterwards, and another process may have moved it in between. Then
// the file's contents say where it was.
int64_t SharedPosition::AfterShared(Recording& rec, int fd, std::span<const std::byte> data,
                                    size_t more, Move move) {
  const ErrnoKeeper keep;
  const int64_t after = lseek(fd, 0, SEEK_CUR);
  if (after < 0) return -1;
  const auto size = static_cast<int64_t>(data.size() + more);
  const int64_t expected = position_.load(std::memory_order_relaxed);
  int64_t position = after - size;
  if (position != expected || contended_.load(std::memory_order_relaxed)) {
    contended_.store(true, std::memory_order_relaxed);
    position = FindMoved(fd, data, position, expected, after);
  }
  if (position != expected || !IsTold())
    Record(rec, position, after, move == Move::kRead ? data : std::span<const std::byte>());
  moves_.fetch_add(1, std::memory_order_relaxed);
  position_.store(position < 0 ? after : position + size, std::memory_order_relaxed);
  return position;
}

void SharedPosition::Record(Recording& rec, int64_t position, int64_t after,
                            std::span<const std::byte> data) {
  constexpr size_t kMostInline = 2 << 10;
  told_.store(InputGeneration(), std::memory_order_relaxed);
  std::byte text[sizeof(preload::SharedMove) + kMostInline];
  const preload::SharedMove move{moves_.load(std::memory_order_relaxed), open_, after};
  std::memcpy(text, &move, sizeof move);
  format::Input input;
  input.api = static_cast<uint32_t>(api::LibcApi::klseek);
  input.key = key_;
  input.result = position;
  size_t length = sizeof move;
  if (position < 0 && data.size() <= kMostInline) {
    if (!data.empty()) std::memcpy(text + length, data.data(), data.size());
    length += data.size();
  } else if (position < 0) {
    input.hash = digest::HashBytes(data);
    input.segment = rec.KeepPayload(input.hash, data, 1).segment;
  }
  input.data = {reinterpret_cast<const char*>(text), length};
  rec.writer.Write(input);
}

void SharedPosition::AfterSeek(Recording* rec, int64_t position, int64_t offset, int whence) {
  if (whence == SEEK_CUR) {
    const int64_t expected = position_.load(std::memory_order_relaxed) + offset;
    if (rec != nullptr && IsShared() && (position != expected || !IsTold()))
      Record(*rec, position, position, {});
    moves_.fetch_add(1, std::memory_order_relaxed);
  }
  position_.store(position, std::memory_order_relaxed);
}

}  // namespace deja::recorder

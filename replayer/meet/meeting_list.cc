#include "replayer/meet/meeting_list.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <vector>

#include "api/libc_table.h"
#include "common/os/folder_entries.h"
#include "common/process/proc_stat.h"
#include "replayer/core/session.h"

namespace deja::replayer {
namespace {

struct Meeting {
  uint64_t key;
  uint64_t number;
  friend bool operator<(const Meeting& a, const Meeting& b) {
    return a.key != b.key ? a.key < b.key : a.number < b.number;
  }
};

// A file is the name of the process, a line feed, and its meetings in order.
constexpr size_t kMostName = 512;

std::string FolderOf(const std::string& scratch) {
  return scratch + "/meetings";
}

std::vector<Meeting> MeetingsOf(const ReplayPlan& plan) {
  constexpr auto kAcquire = static_cast<uint32_t>(api::LibcApi::ksem_wait);
  std::vector<Meeting> meetings;
  for (const RecordedThread& thread : plan.threads())
    for (auto it = thread.by_key.lower_bound({kAcquire, 0});
         it != thread.by_key.end() && it->first.first == kAcquire; ++it)
      for (const uint32_t at : it->second)
        if (const int64_t number = plan.inputs()[at].result; number >= 0)
          meetings.push_back({it->first.second, static_cast<uint64_t>(number)});
  std::sort(meetings.begin(), meetings.end());
  return meetings;
}

bool WriteAll(int fd, const void* data, size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size != 0) {
    const ssize_t n = write(fd, at, size);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

// Calls take(pid, descriptor) for each file, until it returns true.
template <typename Take>
void ForEachFile(const std::string& scratch, Take take) {
  const std::string folder = FolderOf(scratch);
  ForEachEntry(folder.c_str(), [&](const char* name, int in) {
    const int pid = std::atoi(name);
    if (pid <= 0 || strchr(name, '.') != nullptr) return true;
    const int fd = openat(in, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return true;
    const bool done = take(pid, fd);
    close(fd);
    return !done;
  });
}

bool Holds(int fd, off_t begin, off_t end, const Meeting& wanted) {
  auto left = 0L;
  auto right = (end - begin) / static_cast<off_t>(sizeof(Meeting));
  while (left < right) {
    const auto middle = left + (right - left) / 2;
    Meeting there{};
    if (pread(fd, &there, sizeof there, begin + middle * static_cast<off_t>(sizeof there)) !=
        static_cast<ssize_t>(sizeof there))
      return false;
    if (!(there < wanted) && !(wanted < there)) return true;
    if (there < wanted)
      left = middle + 1;
    else
      right = middle;
  }
  return false;
}

}  // namespace

void AnnounceMeetings(const Session& session) {
  const std::vector<Meeting> meetings = MeetingsOf(session.plan());
  const std::string folder = FolderOf(session.options().scratch);
  mkdir(folder.c_str(), 0777);
  const std::string path = folder + "/" + std::to_string(syscall(SYS_getpid));
  const std::string fresh = path + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return;
  const std::string& child = session.options().child;
  const std::string name = (child.empty() ? "the rank" : child.substr(0, kMostName)) + "\n";
  const bool written = WriteAll(fd, name.data(), name.size()) &&
                       WriteAll(fd, meetings.data(), meetings.size() * sizeof(Meeting));
  close(fd);
  if (written) rename(fresh.c_str(), path.c_str());
}

bool HasAnnouncedMeetings(const std::string& scratch, int pid) {
  return access((FolderOf(scratch) + "/" + std::to_string(pid)).c_str(), F_OK) == 0;
}

MeetingOwner OwnerOfMeeting(const std::string& scratch, uint64_t key, uint32_t number) {
  MeetingOwner owner;
  ForEachFile(scratch, [&](int pid, int fd) {
    char name[kMostName + 1];
    const ssize_t n = pread(fd, name, sizeof name, 0);
    const void* end = n > 0 ? std::memchr(name, '\n', static_cast<size_t>(n)) : nullptr;
    if (end == nullptr) return false;
    const std::string_view text(name, static_cast<size_t>(static_cast<const char*>(end) - name));
    struct stat st;
    if (fstat(fd, &st) != 0) return false;
    if (!Holds(fd, static_cast<off_t>(text.size() + 1), st.st_size, {key, number})) return false;
    owner = {pid, !ReadProcStat(pid).Runs(), std::string(text)};
    return !owner.gone;
  });
  return owner;
}

uint64_t TimeUsedBy(int pid) {
  // The kernel's number for the processor time of a process.
  const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(pid) << 3) | 2);
  timespec used{};
  if (syscall(SYS_clock_gettime, clock, &used) != 0) return 0;
  return static_cast<uint64_t>(used.tv_sec) * 1000000000 + static_cast<uint64_t>(used.tv_nsec);
}

uint64_t TimeUsedByAll(const std::string& scratch) {
  uint64_t ns = 0;
  ForEachFile(scratch, [&](int pid, int) {
    ns += TimeUsedBy(pid);
    return false;
  });
  return ns;
}

}  // namespace deja::replayer

#include "replayer/files/machine_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

#include "preload/files/machine_files.h"
#include "replayer/core/session.h"
#include "replayer/files/make_folders.h"

namespace deja::replayer {

using api::LibcApi;
using preload::FileUse;

namespace {

// Whole at once, whoever reads it.
bool WriteFile(const std::string& path, std::string_view content) {
  const std::string fresh = path + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
  if (fd < 0) return false;
  const bool ok = write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  close(fd);
  return ok && rename(fresh.c_str(), path.c_str()) == 0;
}

// Names come from a trace: none may lead out of the folder.
bool IsPlainName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

bool WriteFolder(const std::string& path, std::string_view entries) {
  if (!MakeFolders(path)) return false;
  for (size_t at = 0; at < entries.size();) {
    const size_t end = std::min(entries.find('\0', at), entries.size());
    std::string_view name = entries.substr(at, end - at);
    at = end + 1;
    const bool folder = !name.empty() && name[0] == '/';
    if (folder) name.remove_prefix(1);
    if (!IsPlainName(name)) continue;
    const std::string entry = path + "/" + std::string(name);
    if (folder ? mkdir(entry.c_str(), 0777) != 0 && errno != EEXIST : !WriteFile(entry, {}))
      return false;
  }
  return true;
}

// The content after the name, which must be the asked one.
bool ContentOf(Session& session, const RecordedInput& answer, std::string_view name,
               std::string& content) {
  constexpr uint64_t kMost = 64 << 20;
  const std::string_view data = session.plan().Bytes(answer.data);
  if (data.size() < name.size() + 1 || data.substr(0, name.size()) != name ||
      data[name.size()] != '\0')
    return false;
  content = data.substr(name.size() + 1);
  if (answer.hash.IsZero()) return true;
  const uint64_t size = session.payloads().SizeOf(answer.hash).value_or(0);
  const auto bytes = size > kMost ? std::nullopt : session.payloads().Read(answer.hash, size);
  if (!bytes) return false;
  content.assign(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  return true;
}

// The program's own folder in /proc, which it names by the number that it got. `name` is what
// MachineName makes of `path`.
const char* ByLivePid(const char* path, std::string_view name, int live_pid,
                      std::span<char> buffer) {
  constexpr std::string_view kSelf = "/proc/self";
  constexpr size_t kNumberAt = sizeof "/proc/" - 1;
  const bool by_number = std::strncmp(path, "/proc/", kNumberAt) == 0 && path[kNumberAt] >= '0' &&
                         path[kNumberAt] <= '9' && name.substr(0, kSelf.size()) == kSelf;
  if (!by_number) return path;
  const std::string mapped =
      "/proc/" + std::to_string(live_pid) + std::string(name.substr(kSelf.size()));
  if (mapped.size() >= buffer.size()) return path;
  std::memcpy(buffer.data(), mapped.c_str(), mapped.size() + 1);
  return buffer.data();
}

}  // namespace

const RecordedInput* MachineServer::Find(Session& session, ThreadState& thread, LibcApi api,
                                         uint64_t key, bool counts) {
  const ReplayPlan& plan = session.plan();
  const InputKey question{static_cast<uint32_t>(api), key};
  const uint32_t opens = counts ? thread.next_by_key[question]++ : thread.next_by_key[question];
  if (thread.recorded != kNone) {
    const auto& by_key = plan.threads()[thread.recorded].by_key;
    auto it = by_key.find(question);
    if (it != by_key.end()) {
      // An event an open with another answer: the last one up to this open.
      const RecordedInput* found = nullptr;
      for (uint32_t index : it->second) {
        const RecordedInput& input = plan.inputs()[index];
        if (found != nullptr && input.result > static_cast<int64_t>(opens)) break;
        found = &input;
      }
      return found;
    }
  }
  auto it = plan.identities().find(question);
  return it == plan.identities().end() ? nullptr : &plan.inputs()[it->second];
}

std::string MachineServer::Make(Session& session, const RecordedInput& answer,
                                std::string_view name) {
  const auto number = static_cast<size_t>(&answer - session.plan().inputs().data());
  std::lock_guard<std::mutex> lock(mutex_);
  // A forked child has what its parent has made.
  if (const auto made = made_.find(&answer); made != made_.end()) return made->second;
  // Another process of the rank has another recording, with other answers of the same number.
  std::string path = session.options().scratch + std::string(kMachineFolder) +
                     std::to_string(syscall(SYS_getpid)) + "-" + std::to_string(number) +
                     std::string(name);
  std::string content;
  if (!ContentOf(session, answer, name, content)) return {};
  bool folder = answer.api == static_cast<uint32_t>(LibcApi::kopendir);
  if (answer.api == static_cast<uint32_t>(LibcApi::kaccess)) {
    folder = content == "/";
    content.clear();
  }
  const bool ok = folder ? WriteFolder(path, content)
                         : MakeFolders(path.substr(0, path.rfind('/'))) && WriteFile(path, content);
  if (!ok) return {};
  made_.emplace(&answer, path);
  return path;
}

const char* MachineServer::Map(Session& session, ThreadState& thread, int live_pid, int dirfd,
                               const char* path, FileUse use, std::span<char> buffer) {
  const bool looks = use == FileUse::kLook;
  if (use != FileUse::kRead && !looks) return path;
  const std::string served = session.options().scratch + std::string(kMachineFolder);
  char name_buffer[PATH_MAX];
  const std::string_view name = preload::MachineName(
      dirfd, path, {live_pid, static_cast<int>(session.plan().pid), served}, name_buffer);
  if (name.empty()) return path;
  if (preload::FindMachineFile(name) == nullptr) return ByLivePid(path, name, live_pid, buffer);
  const int saved_errno = errno;
  const uint64_t key = preload::MachineKey(name);
  const RecordedInput* answer = nullptr;
  if (looks) answer = Find(session, thread, LibcApi::kaccess, key, true);
  if (answer == nullptr) answer = Find(session, thread, LibcApi::kopen, key, !looks);
  if (answer == nullptr) answer = Find(session, thread, LibcApi::kopendir, key, !looks);
  if (answer != nullptr && answer->error != 0) {
    errno = answer->error;
    return nullptr;
  }
  // A name that was not asked for is this machine's, and so are size and mode of what is there.
  std::string mapped(name);
  struct stat info;
  const bool is_made = answer != nullptr && (!looks || lstat(mapped.c_str(), &info) != 0);
  if (is_made) mapped = Make(session, *answer, name);
  errno = saved_errno;
  if (!is_made && path[0] == '/') return ByLivePid(path, name, live_pid, buffer);
  if (mapped.empty() || mapped.size() >= buffer.size()) return path;
  std::memcpy(buffer.data(), mapped.c_str(), mapped.size() + 1);
  return buffer.data();
}

size_t UnmapMachinePath(std::string_view scratch, char* path, size_t size) {
  const std::string served = std::string(scratch) + std::string(kMachineFolder);
  const std::string_view given(path, size);
  if (scratch.empty() || given.substr(0, served.size()) != served) return size;
  const size_t name = given.find('/', served.size());
  if (name == std::string_view::npos) return size;
  std::memmove(path, path + name, size - name);
  return size - name;
}

}  // namespace deja::replayer

#include "replayer/meet/pipe_order.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

#include "api/libc_table.h"
#include "common/os/folder_entries.h"
#include "preload/hooks/input.h"
#include "preload/meet/connection_names.h"
#include "replayer/core/session.h"

namespace deja::replayer {
namespace {

// A file has `begin`, and for each read its number, its size and, after `known`, its bytes.
struct Entry {
  uint64_t number = 0;
  uint32_t size = 0;
  uint16_t known = 0;
  uint16_t several_readers = 0;
};

std::string PipesFolder(const std::string& scratch) {
  return scratch + "/pipes";
}

std::string PipePrefix(uint64_t key) {
  char text[32];
  snprintf(text, sizeof text, "%016llx.", static_cast<unsigned long long>(key));
  return text;
}

void Append(std::string& out, const void* data, size_t size) {
  out.append(static_cast<const char*>(data), size);
}

bool PutFile(const std::string& path, std::string_view content) {
  const std::string fresh = path + "~";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  bool good = true;
  while (good && !content.empty()) {
    const ssize_t n = write(fd, content.data(), content.size());
    good = n > 0;
    if (good) content.remove_prefix(static_cast<size_t>(n));
  }
  close(fd);
  return good && rename(fresh.c_str(), path.c_str()) == 0;
}

std::string GetFile(int folder, const char* name) {
  std::string content;
  const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return content;
  char buffer[4096];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof buffer)) > 0) content.append(buffer, static_cast<size_t>(n));
  close(fd);
  return content;
}

template <typename T>
bool Cut(std::string_view& from, T& out) {
  if (from.size() < sizeof out) return false;
  std::memcpy(&out, from.data(), sizeof out);
  from.remove_prefix(sizeof out);
  return true;
}

}  // namespace

RecordedPipeRead::RecordedPipeRead(std::string_view data) {
  uint32_t flags = 0;
  if (!Cut(data, position) || !Cut(data, size) || !Cut(data, flags)) {
    size = 0;
    return;
  }
  several_readers = (flags & 1) != 0;
  is_first_reader = (flags & 2) != 0;
  is_alone = (flags & 4) != 0;
  if (data.size() == size) bytes = data;
}

uint64_t KeyOfFifo(std::string_view name) {
  return preload::HashOf(name) | 1;
}

namespace {

struct OnePipe {
  uint64_t begin = 0;
  std::map<uint64_t, RecordedPipeRead> reads;  // by number
};

void AddFifos(const ReplayPlan& plan, std::map<uint64_t, OnePipe>& pipes) {
  for (const PlannedTransfer& transfer : plan.transfers()) {
    if (transfer.kind != format::TransferKind::kReceived || transfer.result <= 0) continue;
    const preload::FifoName fifo(plan.connections()[transfer.connection].name);
    if (fifo.path.empty()) continue;
    OnePipe& pipe = pipes[KeyOfFifo(fifo.path)];
    RecordedPipeRead read({});
    read.size = static_cast<uint32_t>(transfer.result);
    const std::string_view bytes = plan.Bytes(transfer.data);
    if (bytes.size() == read.size) read.bytes = bytes;
    pipe.reads.emplace(pipe.reads.size(), read);
  }
}

}  // namespace

void AnnouncePipes(const Session& session) {
  constexpr auto kApi = static_cast<uint32_t>(api::LibcApi::kpipe);
  std::map<uint64_t, OnePipe> pipes;
  const ReplayPlan& plan = session.plan();
  AddFifos(plan, pipes);
  for (const RecordedThread& thread : plan.threads())
    for (auto it = thread.by_key.lower_bound({kApi, 0});
         it != thread.by_key.end() && it->first.first == kApi; ++it)
      for (const uint32_t at : it->second) {
        const RecordedInput& input = plan.inputs()[at];
        if (input.error != 0) continue;
        const RecordedPipeRead read(plan.Bytes(input.data));
        if (read.size == 0 || read.is_alone) continue;
        OnePipe& pipe = pipes[it->first.second];
        if (pipe.reads.empty()) pipe.begin = read.position;
        pipe.reads.emplace(static_cast<uint64_t>(input.result), read);
      }
  if (pipes.empty()) return;
  const std::string folder = PipesFolder(session.options().scratch);
  mkdir(folder.c_str(), 0777);
  for (const auto& [key, pipe] : pipes) {
    std::string content;
    Append(content, &pipe.begin, sizeof pipe.begin);
    for (const auto& [number, read] : pipe.reads) {
      Entry entry{number, read.size};
      entry.known = read.bytes.empty() ? 0 : 1;
      entry.several_readers = read.several_readers ? 1 : 0;
      Append(content, &entry, sizeof entry);
      content.append(read.bytes);
    }
    PutFile(folder + "/" + PipePrefix(key) + std::to_string(syscall(SYS_getpid)), content);
  }
}

PipeOrder OrderOfPipe(const std::string& scratch, uint64_t key) {
  PipeOrder order;
  const std::string prefix = PipePrefix(key);
  std::vector<std::string> contents;
  ForEachEntry(PipesFolder(scratch).c_str(), [&](const char* name, int folder) {
    const bool is_one =
        std::strncmp(name, prefix.c_str(), prefix.size()) == 0 && std::strchr(name, '~') == nullptr;
    if (is_one) contents.push_back(GetFile(folder, name));
    return true;
  });
  std::vector<std::pair<Entry, std::string_view>> entries;
  for (std::string_view content : contents) {
    uint64_t begin = 0;
    if (!Cut(content, begin)) continue;
    ++order.readers;
    order.begin = std::max(order.begin, begin);
    Entry entry;
    while (Cut(content, entry)) {
      const size_t size = entry.known != 0 ? std::min<size_t>(entry.size, content.size()) : 0;
      entries.emplace_back(entry, content.substr(0, size));
      order.several_readers |= entry.several_readers != 0;
      content.remove_prefix(size);
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.first.number < b.first.number; });
  for (const auto& [entry, bytes] : entries) {
    order.bytes.append(bytes);
    order.known.append(bytes.size(), 1);
    order.bytes.resize(order.bytes.size() + entry.size - bytes.size());
    order.known.resize(order.bytes.size());
  }
  return order;
}

size_t PipeOrder::Fits(std::string_view message, uint64_t written) const {
  if (written < begin || IsOver(written)) return message.size();
  const size_t at = written - begin;
  const size_t most = std::min(message.size(), bytes.size() - at);
  size_t same = 0;
  while (same < most && (known[at + same] == 0 || bytes[at + same] == message[same])) ++same;
  if (same == most) return message.size();
  return message.size() > PIPE_BUF ? same / PIPE_BUF * PIPE_BUF : 0;
}

}  // namespace deja::replayer

#include "replayer/served_file.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace deja::replayer {
namespace {

std::atomic<Session*> g_session{nullptr};

bool WasDropped(const RecordedFile& file, uint64_t at) {
  return std::any_of(file.ranges.begin(), file.ranges.end(), [&](const RecordedRange& range) {
    return range.dropped && range.begin <= at && at - range.begin < range.size;
  });
}

}  // namespace

uint64_t FirstUnread(const RecordedFile& file, uint64_t begin, uint64_t end) {
  for (const RecordedRange& range : file.ranges) {
    if (range.begin > begin || begin >= end) break;
    if (range.kept) begin = std::max(begin, range.begin + range.size);
  }
  return std::min(begin, end);
}

void ServedFile::SetSession(Session* session) {
  g_session.store(session);
}

void ServedFile::AfterRead(int fd, const void*, size_t size, int64_t offset) {
  Session* session = g_session.load();
  if (session == nullptr) return;
  const std::vector<uint32_t>* states = session->plan().FindFile(path_);
  if (states == nullptr) return;
  if (offset < 0) offset = lseek(fd, 0, SEEK_CUR) - static_cast<int64_t>(size);
  if (offset < 0) return;
  const auto begin = static_cast<uint64_t>(offset);
  const uint64_t end = begin + size;
  uint64_t first = begin;
  for (uint32_t index : *states)
    first = std::max(first, FirstUnread(session->plan().files()[index], begin, end));
  if (first == end) return;
  const bool dropped = std::any_of(states->begin(), states->end(), [&](uint32_t index) {
    return WasDropped(session->plan().files()[index], first);
  });
  ThreadState& thread = session->Thread();
  Divergence divergence = session->NewDivergence(DivergenceKind::kFile, thread);
  divergence.api = "read";
  divergence.what = "the replay reads bytes " + std::to_string(begin) + " to " +
                    std::to_string(end - 1) + " of the file " + path_ +
                    "; the recording does not have those from " + std::to_string(first) + " on";
  if (dropped)
    divergence.what += std::string(": ") + kNotInWindow;
  else if (session->plan().end().kind == EndKind::kTorn)
    divergence.what += ": the recorded process was killed, and what it read last is lost";
  else
    divergence.what += ": the recorded run did not read them";
  session->Diverge(thread, std::move(divergence), 0);
}

}  // namespace deja::replayer

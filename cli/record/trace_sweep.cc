#include "cli/record/trace_sweep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "common/process/process_identity.h"
#include "format/layout/folder_lock.h"
#include "format/layout/rank_folder.h"
#include "format/reader/rank_reader.h"
#include "format/repair/recovery.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

// The last one: a process number may come again within a job.
const ProcessEnd* FindEnd(const std::vector<ProcessEnd>& ends, uint32_t pid) {
  auto it = std::find_if(ends.rbegin(), ends.rend(), [&](const ProcessEnd& end) {
    return static_cast<uint32_t>(end.pid) == pid;
  });
  return it == ends.rend() ? nullptr : &*it;
}

struct Image {
  uint32_t rank = 0;
  uint32_t attempt = 0;
  std::string folder;
  uint32_t pid = 0;
  std::string tail;
};

// By rank and attempt.
std::vector<Image> ReadImages(const std::string& directory) {
  std::vector<Image> images;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    auto name = format::ParseRankFolderName(entry.path().filename().string());
    auto reader = name ? format::RankReader::Open(entry.path().string())
                       : Result<std::unique_ptr<format::RankReader>>(nullptr);
    if (!reader || *reader == nullptr) continue;
    const format::TraceHeader& header = (*reader)->header();
    images.push_back({name->rank, name->attempt, entry.path().string(), header.process.pid,
                      std::string(header.tail.path)});
  }
  std::sort(images.begin(), images.end(), [](const Image& a, const Image& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.attempt < b.attempt;
  });
  return images;
}

}  // namespace

std::string OwnHostname() {
  char host[256] = {};
  return gethostname(host, sizeof host - 1) == 0 ? host : "";
}

void KeepLastImages(const std::string& directory) {
  const std::vector<Image> images = ReadImages(directory);
  std::error_code error;
  std::string name;
  for (size_t i = 0; i < images.size(); ++i) {
    if (name.empty()) name = images[i].folder;
    const bool replaced = i + 1 < images.size() && images[i + 1].rank == images[i].rank &&
                          images[i + 1].pid == images[i].pid;
    if (replaced) {
      fs::remove_all(images[i].folder, error);
      format::RemoveTail(images[i].tail);
      continue;
    }
    if (images[i].folder != name) fs::rename(images[i].folder, name, error);
    name.clear();
  }
}

std::vector<SweptRank> SweepTrace(const std::string& directory, const std::vector<ProcessEnd>& ends,
                                  bool everything) {
  std::vector<SweptRank> ranks;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    auto name = format::ParseRankFolderName(entry.path().filename().string());
    if (!name) continue;
    SweptRank rank;
    rank.rank = name->rank;
    rank.attempt = name->attempt;
    rank.folder = entry.path().string();
    auto reader = format::RankReader::Open(rank.folder);
    if (!reader) {
      rank.error = reader.error().message;
      ranks.push_back(rank);
      continue;
    }
    const format::TraceHeader& header = (*reader)->header();
    rank.pid = header.process.pid;
    rank.world_size = header.world_size;
    bool is_local = header.process.hostname == OwnHostname();
    reader->reset();
    const ProcessEnd* end = FindEnd(ends, rank.pid);
    if (end != nullptr) {
      rank.fate.known = true;
      rank.fate.exit_code = end->exit_code;
      rank.fate.signal = static_cast<uint32_t>(end->signal);
    }
    rank.still_running = end == nullptr && is_local && Runs(rank.pid);
    bool complete = end != nullptr || (everything && is_local && !rank.still_running);
    if (complete) {
      auto report = format::RecoverRank(rank.folder, rank.fate);
      if (!report) rank.error = report.error().message;
    }
    const format::FolderLock alone(rank.folder);  // another sweep may be at it
    if (auto again = format::RankReader::Open(rank.folder)) {
      const format::Footer& totals = (*again)->totals();
      rank.events = totals.events;
      rank.events_lost = totals.events_lost;
      rank.payloads_lost = totals.payloads_lost;
      if (!rank.fate.known) rank.fate = totals.fate;
    }
    rank.bytes = format::FolderBytes(rank.folder);
    ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end(), [](const SweptRank& a, const SweptRank& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.attempt < b.attempt;
  });
  return ranks;
}

}  // namespace deja::cli

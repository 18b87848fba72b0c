#include "cli/summaries/input_summary.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "cli/output.h"
#include "format/reader/file_ranges.h"

namespace deja::cli {
namespace {

constexpr uint32_t kTelling = 1u << static_cast<uint32_t>(format::EventKind::kInputFile) |
                              1u << static_cast<uint32_t>(format::EventKind::kFileRead);

void Add(InputFileSummary& to, const format::FileRead& event) {
  const bool is_kept = event.payload == static_cast<uint32_t>(format::PayloadState::kKept);
  const bool is_lost = event.how == static_cast<uint32_t>(format::FileReadHow::kChanged) ||
                       event.payload == static_cast<uint32_t>(format::PayloadState::kDropped);
  for (const format::FileRange& range : format::RangesOf(event)) {
    to.read += range.size;
    if (is_kept) to.kept += range.size;
    if (is_lost) to.lost += range.size;
  }
}

std::string LostText(const InputFileSummary& file) {
  return file.lost == 0 ? "" : fmt::format(", {} not recorded", HumanBytes(file.lost));
}

const char* ModeName(uint32_t mode) {
  static constexpr const char* kNames[] = {"unknown", "off", "digest", "full"};
  return mode < std::size(kNames) ? kNames[mode] : "unknown";
}

}  // namespace

InputSummary ReadInputSummary(const format::RankReader& reader) {
  InputSummary summary;
  summary.mode = reader.header().inputs;
  std::map<uint32_t, std::string> paths;
  std::map<uint32_t, InputFileSummary> by_number;
  const auto& batches = reader.batches();
  for (size_t i = 0; i < batches.size(); ++i) {
    if ((batches[i].kinds & kTelling) == 0) continue;
    auto cursor = reader.EventsFromBatch(i);
    while (const format::Event* event = cursor->Next()) {
      if (cursor->batch_number() != i) break;
      if (const auto* file = event->As<format::InputFile>()) {
        if (S_ISLNK(file->mode) || file->program) continue;
        InputFileSummary& one = by_number[file->file];
        one.path = std::string(file->path);
        one.size = file->size;
        one.missing = file->error != 0;
      } else if (const auto* ranges = event->As<format::FileRead>()) {
        Add(by_number[ranges->file], *ranges);
      }
    }
  }
  std::map<std::string, InputFileSummary> by_path;
  for (const auto& [number, one] : by_number) {
    InputFileSummary& file = by_path[one.path];
    file.path = one.path;
    file.size = one.size;
    file.missing = one.missing;
    for (InputFileSummary* sum : {&file, &summary.total}) {
      sum->read += one.read;
      sum->kept += one.kept;
      sum->lost += one.lost;
    }
  }
  for (auto& [path, file] : by_path) summary.files.push_back(std::move(file));
  return summary;
}

std::vector<std::string> InputSummary::Lines(size_t most) const {
  std::vector<const InputFileSummary*> read;
  for (const InputFileSummary& file : files)
    if (file.read != 0) read.push_back(&file);
  if (read.empty()) return {};
  std::vector<std::string> lines;
  const std::string what =
      total.kept == 0 ? "digests" : fmt::format("{} of them in the trace", HumanBytes(total.kept));
  lines.push_back(fmt::format("inputs: {} file{}, {} read, {}{}", HumanCount(read.size()),
                              read.size() == 1 ? "" : "s", HumanBytes(total.read), what,
                              LostText(total)));
  std::stable_sort(
      read.begin(), read.end(),
      [](const InputFileSummary* a, const InputFileSummary* b) { return a->read > b->read; });
  for (size_t i = 0; i < read.size() && i < most; ++i)
    lines.push_back(fmt::format("  {}: {} of {}{}", read[i]->path, HumanBytes(read[i]->read),
                                HumanBytes(read[i]->size), LostText(*read[i])));
  if (read.size() > most)
    lines.push_back(fmt::format("  and {} more (--json has all)", HumanCount(read.size() - most)));
  return lines;
}

nlohmann::json ToJson(const InputSummary& summary) {
  nlohmann::json files = nlohmann::json::array();
  for (const InputFileSummary& file : summary.files) {
    nlohmann::json one = {{"path", file.path},
                          {"size", file.size},
                          {"read", file.read},
                          {"kept", file.kept},
                          {"lost", file.lost}};
    if (file.missing) one["missing"] = true;
    files.push_back(one);
  }
  return {{"mode", ModeName(summary.mode)},
          {"read", summary.total.read},
          {"kept", summary.total.kept},
          {"lost", summary.total.lost},
          {"files", files}};
}

}  // namespace deja::cli

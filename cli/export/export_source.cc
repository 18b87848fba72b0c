#include "cli/export/export_source.h"

#include <fmt/format.h>

#include <span>

#include "common/text/plain_text.h"

namespace deja::cli {

const check::CommSummary& ExportSource::CommOf(const check::JoinedOperation& one,
                                               const check::Part& part) const {
  for (const check::Member& member : job.communicators[one.communicator].members)
    if (member.rank == part.rank && job.CommOf(member).number == part.comm)
      return job.CommOf(member);
  return job.CommOf(job.communicators[one.communicator].members.front());
}

std::string ExportSource::RankName(size_t index) const {
  return PlainText(fmt::format("rank {} ({}, process {})", job.ranks[index].rank, ranks[index].host,
                               ranks[index].pid));
}

std::string ExportSource::CommName(size_t communicator) const {
  const check::Communicator& its = job.communicators[communicator];
  return PlainText(its.name.empty() ? job.NameOf(its)
                                    : fmt::format("{} ({})", job.NameOf(its), its.name));
}

Result<ExportFile> ExportFile::Create(const std::string& path) {
  auto file = CreateAppendFile(path);
  if (!file) return tl::unexpected(file.error());
  return ExportFile(std::move(*file));
}

void ExportFile::Write(std::string_view text) {
  constexpr size_t kHeld = size_t{1} << 20;
  held_ += text;
  if (held_.size() >= kHeld) Flush();
}

void ExportFile::Flush() {
  if (status_) status_ = file_->Append(std::as_bytes(std::span(held_)), {});
  held_.clear();
}

Status ExportFile::Finish() {
  Flush();
  return status_;
}

size_t Lanes::Of(size_t rank, size_t communicator, const check::Part& part) {
  std::vector<uint64_t>& ends = ends_[{rank, communicator}];
  size_t lane = 0;
  while (lane < ends.size() && ends[lane] > part.begin_ns) ++lane;
  if (lane == ends.size()) ends.push_back(0);
  ends[lane] = part.end_ns;
  return lane;
}

}  // namespace deja::cli

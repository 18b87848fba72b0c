#include "check/evidence/summary_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "check/evidence/summary_codec.h"
#include "common/os/file.h"
#include "format/wire/frame_reader.h"
#include "format/wire/frame_writer.h"

namespace deja::check {
namespace {

using format::FrameOutcome;
using format::FrameResult;
using format::FrameType;

constexpr auto kSummary = static_cast<FrameType>(9);  // docs/FORMAT.md reserves it
constexpr size_t kEndBytes = 64 << 10;
constexpr size_t kPieceBytes = 4 << 20;
constexpr int kZstdLevel = 1;

std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// What the first frame says: the source, then the producer.
std::string HeadOf(const SummarySource& source, const std::string& producer) {
  std::string head(sizeof source, '\0');
  std::memcpy(head.data(), &source, sizeof source);
  return head + producer;
}

Result<size_t> ReadEnd(const ReadFile& file, uint64_t offset, std::vector<std::byte>& end) {
  end.resize(std::min<uint64_t>(kEndBytes, file.size()));
  return file.ReadAt(offset, end);
}

// All frames of a finished summary; the first one is the head.
Result<std::string> ReadFrames(const ReadFile& file, std::string& head) {
  format::FrameReader frames(file);
  DEJA_RETURN_IF_ERROR(frames.CheckMagic());
  std::string bytes;
  std::vector<std::byte> payload;
  for (bool is_first = true;; is_first = false) {
    const FrameResult frame = frames.Next(payload);
    if (frame.outcome == FrameOutcome::kCleanEnd) return bytes;
    if (frame.outcome != FrameOutcome::kRecord)
      return Fail(ErrorCode::kCorrupt, "it is damaged: " + frame.reason);
    if (frame.type != kSummary) continue;
    const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
    if (is_first)
      head = text;
    else
      bytes += text;
  }
}

Status WriteFrames(std::unique_ptr<AppendFile> file, const std::string& head,
                   std::string_view bytes, uint64_t& size) {
  format::FrameWriter frames(std::move(file), kZstdLevel);
  DEJA_ASSIGN_OR_RETURN(const uint64_t at, frames.Write(kSummary, AsBytes(head)));
  (void)at;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kPieceBytes, bytes.size()))) {
    auto written = frames.Write(kSummary, AsBytes(bytes.substr(0, kPieceBytes)));
    if (!written) return tl::unexpected(std::move(written.error()));
  }
  DEJA_RETURN_IF_ERROR(frames.WriteFooter(format::Footer{}));
  size = frames.offset();
  return {};
}

}  // namespace

Result<SummarySource> SummarySourceOf(const std::string& folder) {
  DEJA_ASSIGN_OR_RETURN(const auto file, OpenReadFile(folder + "/" + format::kEventsFile));
  std::vector<std::byte> first;
  std::vector<std::byte> last;
  DEJA_ASSIGN_OR_RETURN(const size_t got_first, ReadEnd(*file, 0, first));
  DEJA_ASSIGN_OR_RETURN(
      const size_t got_last,
      ReadEnd(*file, file->size() - std::min<uint64_t>(kEndBytes, file->size()), last));
  return SummarySource{file->size(), format::Checksum(std::span(first).first(got_first),
                                                      std::span(last).first(got_last))};
}

Result<uint64_t> WriteSummaryFile(const std::string& folder, const SummarySource& source,
                                  const std::string& producer, const RankSummary& summary) {
  const std::string path = folder + "/" + kSummaryFile;
  const std::string draft = folder + "/." + kSummaryFile + "-" + std::to_string(getpid());
  unlink(draft.c_str());  // of a process that had this number and was killed
  DEJA_ASSIGN_OR_RETURN(auto file, CreateAppendFile(draft));
  uint64_t size = 0;
  Status written =
      WriteFrames(std::move(file), HeadOf(source, producer), EncodeSummary(summary), size);
  if (written && rename(draft.c_str(), path.c_str()) != 0)
    written = FailErrno("writing " + path, errno);
  if (!written) {
    unlink(draft.c_str());
    return tl::unexpected(std::move(written.error()));
  }
  return size;
}

Result<RankSummary> ReadSummaryFile(const std::string& folder, const std::string& producer) {
  DEJA_ASSIGN_OR_RETURN(const auto file, OpenReadFile(folder + "/" + kSummaryFile));
  DEJA_ASSIGN_OR_RETURN(const SummarySource source, SummarySourceOf(folder));
  std::string head;
  DEJA_ASSIGN_OR_RETURN(const std::string bytes, ReadFrames(*file, head));
  const std::string wanted = HeadOf(source, producer);
  const bool is_of_source = head.substr(0, sizeof source) == wanted.substr(0, sizeof source);
  if (!is_of_source)
    return Fail(ErrorCode::kInvalidArgument, "the recording has changed since it was made");
  RankSummary summary;
  if (head != wanted || !DecodeSummary(bytes, summary))
    return Fail(ErrorCode::kUnsupportedVersion, "another version of Deja made it");
  return summary;
}

}  // namespace deja::check

#include "format/trace/bundle_reader.h"

#include <sys/stat.h>
#include <zip.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/os/file.h"
#include "format/layout/child_folder.h"
#include "format/layout/payload_segments.h"
#include "format/layout/rank_folder.h"
#include "format/trace/bundle_parts.h"
#include "format/trace/zip_archive.h"
#include "format/wire/frame_format.h"

namespace deja::format {
namespace {

constexpr zip_int64_t kMaxEntries = 1 << 20;
// Deja stores entries. Another tool may have packed a trace and deflated it; its contents do not
// shrink much, so a bundle that grows a lot is not one.
constexpr uint64_t kMaxGrowth = 8;

constexpr std::string_view kTraceSuffix = ".deja";

struct EntryName {
  std::string folder;
  std::string file;
};

// "[NAME.deja/]rank-NNNNN[.A]/FILE", or child-PID-NONCE as the folder; nothing else is taken out of
// a bundle.
std::optional<EntryName> ParseEntryName(std::string_view name) {
  size_t slash = name.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view top = name.substr(0, slash);
  if (top.size() > kTraceSuffix.size() &&
      top.substr(top.size() - kTraceSuffix.size()) == kTraceSuffix) {
    name.remove_prefix(slash + 1);
    slash = name.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
  }
  const std::string_view folder = name.substr(0, slash);
  const std::string_view file = name.substr(slash + 1);
  if (!ParseRankFolderName(folder) && !IsChildFolderName(folder)) return std::nullopt;
  if (file != kEventsFile && !ParseSegmentFileName(file)) return std::nullopt;
  return EntryName{std::string(folder), std::string(file)};
}

// What comes out of a bundle, counted.
struct Unpacked {
  uint64_t allowance = 0;  // bytes that may still come
  uint64_t bytes = 0;
  uint64_t total = 0;  // as the bundle says: for progress alone
  const std::function<void(uint64_t, uint64_t)>& progress;
};

Status Extract(zip_t* archive, zip_uint64_t index, const std::string& path, Unpacked& unpacked) {
  const auto close_entry = [](zip_file_t* entry) { zip_fclose(entry); };
  const std::unique_ptr<zip_file_t, decltype(close_entry)> entry(zip_fopen_index(archive, index, 0),
                                                                 close_entry);
  if (entry == nullptr) return Fail(ErrorCode::kCorrupt, ZipError(archive));
  Result<std::unique_ptr<AppendFile>> out = CreateAppendFile(path);
  if (!out) {
    if (out.error().sys_errno == EEXIST) return Fail(ErrorCode::kCorrupt, "it is there twice");
    return tl::unexpected<Error>(std::move(out.error()));
  }
  std::vector<std::byte> buffer(1 << 20);
  for (;;) {
    const zip_int64_t got = zip_fread(entry.get(), buffer.data(), buffer.size());
    if (got < 0) {
      return Fail(ErrorCode::kCorrupt, zip_error_strerror(zip_file_get_error(entry.get())));
    }
    if (got == 0) return {};
    const auto size = static_cast<uint64_t>(got);
    if (size > unpacked.allowance) {
      return Fail(ErrorCode::kLimit, "it unpacks to more than " + std::to_string(kMaxGrowth) +
                                         " times the size of the bundle");
    }
    unpacked.allowance -= size;
    DEJA_RETURN_IF_ERROR((*out)->Append(std::span(buffer).first(static_cast<size_t>(got)), {}));
    unpacked.bytes += size;
    if (unpacked.progress) unpacked.progress(unpacked.bytes, unpacked.total);
  }
}

Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return FailErrno("making: " + path, errno);
  return {};
}

uint64_t SizeOfEntries(zip_t* archive, zip_uint64_t entries) {
  uint64_t bytes = 0;
  for (zip_uint64_t i = 0; i < entries; ++i) {
    zip_stat_t facts;
    if (zip_stat_index(archive, i, 0, &facts) == 0 && (facts.valid & ZIP_STAT_SIZE) != 0)
      bytes += facts.size;
  }
  return bytes;
}

Result<std::unique_ptr<TempFolder>> UnpackWhole(
    const std::string& path, const std::function<void(uint64_t, uint64_t)>& progress) {
  DEJA_ASSIGN_OR_RETURN(const Archive archive, OpenArchive(path, ZIP_RDONLY));
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return FailErrno("looking at " + path, errno);
  const zip_int64_t entries = zip_get_num_entries(archive.get(), 0);
  if (entries > kMaxEntries) {
    return Fail(ErrorCode::kLimit, path + " has too many entries for a bundle");
  }
  Unpacked unpacked{kMaxGrowth * static_cast<uint64_t>(info.st_size), 0, 0, progress};
  if (progress) unpacked.total = SizeOfEntries(archive.get(), static_cast<zip_uint64_t>(entries));
  DEJA_ASSIGN_OR_RETURN(std::unique_ptr<TempFolder> folder, TempFolder::Make());
  for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(entries); ++i) {
    const char* name = zip_get_name(archive.get(), i, ZIP_FL_ENC_RAW);
    const std::optional<EntryName> entry = name == nullptr ? std::nullopt : ParseEntryName(name);
    if (!entry) continue;
    const std::string process = folder->path() + "/" + entry->folder;
    DEJA_RETURN_IF_ERROR(MakeFolder(process));
    const Status extracted = Extract(archive.get(), i, process + "/" + entry->file, unpacked);
    if (!extracted) {
      return Fail(
          extracted.error().code,
          "unpacking: " + std::string(name) + " of " + path + ": " + extracted.error().message,
          extracted.error().sys_errno);
    }
  }
  return folder;
}

}  // namespace

Result<std::unique_ptr<TempFolder>> UnpackBundle(
    const std::string& path, const std::function<void(uint64_t, uint64_t)>& progress) {
  if (!IsFirstPart(path)) return UnpackWhole(path, progress);
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<TempFolder> joined, TempFolder::Make());
  const std::string whole = joined->path() + "/bundle.zip";
  DEJA_RETURN_IF_ERROR(JoinParts(path, whole));
  return UnpackWhole(whole, progress);
}

}  // namespace deja::format

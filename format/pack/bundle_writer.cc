#include "format/pack/bundle_writer.h"

#include <sys/stat.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include "common/os/file.h"
#include "format/layout/child_folder.h"
#include "format/layout/payload_segments.h"
#include "format/pack/finalized_copy.h"
#include "format/pack/reduced_copy.h"
#include "format/trace/temporary_folder.h"
#include "format/trace/zip_archive.h"
#include "format/wire/frame_format.h"
#include "format/wire/frame_reader.h"

namespace deja::format {
namespace {

constexpr std::string_view kTraceSuffix = ".deja";

std::vector<std::string> FilesOf(const std::string& folder) {
  std::vector<std::string> names = {kEventsFile};
  for (const uint32_t segment : ListSegments(folder)) names.push_back(SegmentFileName(segment));
  return names;
}

bool IsFinished(const std::string& folder) {
  const std::vector<std::string> names = FilesOf(folder);
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    const Result<std::unique_ptr<ReadFile>> file = OpenReadFile(folder + "/" + name);
    return file && FindFooter(**file).has_value();
  });
}

// The name of the folder inside the bundle: that of the trace, if it is a plain one.
std::string TopFolder(const std::string& trace_dir) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::weakly_canonical(trace_dir, error);
  const std::string name = full.filename().string();
  const bool plain =
      name.size() > kTraceSuffix.size() &&
      name.compare(name.size() - kTraceSuffix.size(), kTraceSuffix.size(), kTraceSuffix) == 0;
  return plain ? name : "trace.deja";
}

Status AddFile(zip_t* archive, const std::string& name, const std::string& path) {
  zip_source_t* source = zip_source_file(archive, path.c_str(), 0, -1);
  if (source == nullptr) return Fail(ErrorCode::kIo, "reading: " + path + ": " + ZipError(archive));
  const zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return Fail(ErrorCode::kIo, "adding: " + path + ": " + ZipError(archive));
  }
  zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  return {};
}

// `text` outlives the archive.
Status AddText(zip_t* archive, const std::string& name, const std::string& text) {
  zip_source_t* source = zip_source_buffer(archive, text.data(), text.size(), 0);
  if (source == nullptr) return Fail(ErrorCode::kIo, "adding: " + name + ": " + ZipError(archive));
  if (zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8) >= 0) return {};
  zip_source_free(source);
  return Fail(ErrorCode::kIo, "adding: " + name + ": " + ZipError(archive));
}

// Replaces the folders that are not finished by complete copies, in `made`.
Status CompleteThose(std::vector<std::string>& folders, std::unique_ptr<TempFolder>& made) {
  for (std::string& folder : folders) {
    if (IsFinished(folder)) continue;
    if (made == nullptr) {
      DEJA_ASSIGN_OR_RETURN(made, TempFolder::Make());
    }
    const std::string copy = made->path() + "/" + folder.substr(folder.rfind('/') + 1);
    if (mkdir(copy.c_str(), 0700) != 0) return FailErrno("making: " + copy, errno);
    DEJA_RETURN_IF_ERROR(WriteFinalizedCopy(folder, copy));
    folder = copy;
  }
  return {};
}

// The size of a bundle of these folders as they are; more than any limit if one is not finished.
uint64_t BytesOf(const std::vector<std::string>& folders, const std::string& top) {
  uint64_t bytes = 0;
  uint64_t names = 0;
  uint64_t entries = 0;
  struct stat info {};
  for (const std::string& folder : folders) {
    if (!IsFinished(folder)) return ~uint64_t{0};
    const size_t name = top.size() + folder.size() - folder.rfind('/') + 1;
    for (const std::string& file : FilesOf(folder)) {
      if (stat((folder + "/" + file).c_str(), &info) != 0) continue;
      bytes += static_cast<uint64_t>(info.st_size);
      names += name + file.size();
      ++entries;
    }
  }
  return bytes + ZipOverheadBytes(entries, names, bytes);
}

// The texts about what is packed, as far as there is room for them.
Result<std::vector<std::pair<std::string, std::string>>> DescribeCopy(
    const std::string& directory, const std::vector<std::string>& folders, const std::string& top,
    const PackOptions& options) {
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<Trace> copy, Trace::Open(directory));
  std::vector<std::pair<std::string, std::string>> texts;
  uint64_t bytes = options.max_bytes == 0 ? 0 : BytesOf(folders, top);
  constexpr uint64_t kEntryBytes = 256;  // around a text, at most
  for (auto& [name, text] : options.describe(*copy)) {
    bytes += text.size() + 2 * (top.size() + name.size()) + kEntryBytes;
    if (options.max_bytes != 0 && bytes > options.max_bytes) break;
    texts.emplace_back(std::move(name), std::move(text));
  }
  return texts;
}

// Returns the number of files in it.
Result<uint64_t> WriteArchive(const std::string& out, const std::string& top,
                              const std::vector<std::string>& folders,
                              const std::vector<std::pair<std::string, std::string>>& texts) {
  DEJA_ASSIGN_OR_RETURN(Archive archive, OpenArchive(out, ZIP_CREATE | ZIP_EXCL));
  uint64_t files = 0;
  struct stat info {};
  for (const std::string& folder : folders) {
    const std::string name = top + folder.substr(folder.rfind('/')) + "/";
    for (const std::string& file : FilesOf(folder)) {
      const std::string path = folder + "/" + file;
      if (stat(path.c_str(), &info) != 0) continue;
      DEJA_RETURN_IF_ERROR(AddFile(archive.get(), name + file, path));
      ++files;
    }
  }
  for (const auto& [name, text] : texts) {
    DEJA_RETURN_IF_ERROR(AddText(archive.get(), top + "/" + name, text));
    ++files;
  }
  // Closing writes the archive, to a temporary name first.
  if (zip_close(archive.get()) != 0) {
    return Fail(ErrorCode::kIo, "writing: " + out + ": " + ZipError(archive.get()));
  }
  (void)archive.release();
  return files;
}

}  // namespace

Result<BundleResult> WriteBundle(const std::string& trace_path, const std::string& out,
                                 const PackOptions& options) {
  if (options.predict && options.rewriter != nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "packing: " + trace_path +
                                                 ": --predict needs the recorded bytes, and "
                                                 "--redact changes them; leave out one of them");
  }
  if (options.predict && options.max_bytes != 0) {
    return Fail(ErrorCode::kInvalidArgument,
                "packing: " + trace_path +
                    ": --predict needs the steps before each checkpoint, and --max-size keeps the "
                    "last steps first; give one of them");
  }
  DEJA_ASSIGN_OR_RETURN(const std::unique_ptr<Trace> trace, Trace::Open(trace_path));
  struct stat info {};
  if (lstat(out.c_str(), &info) == 0) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "packing: " + trace_path + ": " + out + " exists already; remove it, or name another file");
  }
  const std::string top = options.rewriter != nullptr ? "trace.deja" : TopFolder(trace_path);
  BundleResult result;
  result.path = out;
  std::unique_ptr<TempFolder> made;
  std::vector<std::string> folders = ListChildFolders(trace->directory());
  for (const RankFolder& rank : trace->ranks()) folders.push_back(rank.path);
  const bool as_it_is =
      options.TakesAll() && (options.max_bytes == 0 || BytesOf(folders, top) <= options.max_bytes);
  if (as_it_is) {
    DEJA_RETURN_IF_ERROR(CompleteThose(folders, made));
  } else {
    DEJA_ASSIGN_OR_RETURN(made, TempFolder::Make());
    ReducedCopy smaller(*trace, options, top);
    DEJA_RETURN_IF_ERROR(smaller.Write(made->path()));
    folders = smaller.folders();
    result.left_out = smaller.omissions();
  }
  std::vector<std::pair<std::string, std::string>> texts;
  if (options.describe) {
    DEJA_ASSIGN_OR_RETURN(
        texts, DescribeCopy(as_it_is ? trace->directory() : made->path(), folders, top, options));
  }
  DEJA_ASSIGN_OR_RETURN(result.files, WriteArchive(out, top, folders, texts));
  if (stat(out.c_str(), &info) == 0) result.bytes = static_cast<uint64_t>(info.st_size);
  return result;
}

}  // namespace deja::format

#include "cli/fence/trust_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/programs/sha256.h"
#include "format/trace/bundle_parts.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOwnFolder = 0700;
constexpr mode_t kOwnFile = 0600;

std::string StateFolder() {
  const char* state = getenv("XDG_STATE_HOME");
  if (state != nullptr && state[0] == '/') return state;
  const char* home = getenv("HOME");
  const passwd* user = home == nullptr ? getpwuid(geteuid()) : nullptr;
  if (user != nullptr) home = user->pw_dir;
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.local/state" : std::string();
}

// The properties of a file or folder that no other user can change.
std::optional<struct statx> OwnFile(const std::string& path) {
  struct statx info {};
  if (statx(AT_FDCWD, path.c_str(), 0, STATX_BASIC_STATS | STATX_BTIME, &info) != 0 ||
      info.stx_uid != geteuid() || (info.stx_mode & (S_IWGRP | S_IWOTH)) != 0)
    return std::nullopt;
  return info;
}

// What it is on this disk.
std::string Identity(const struct statx& info) {
  return fmt::format("{}.{}-{}-{}.{:09}", info.stx_dev_major, info.stx_dev_minor, info.stx_ino,
                     info.stx_btime.tv_sec, info.stx_btime.tv_nsec);
}

// The entries of a bundle in parts, all of which belong to this user: one part alone proves
// nothing.
std::vector<std::string> EntriesOfParts(const std::string& first) {
  const std::vector<std::string> parts = format::PartsOf(first);
  const bool own = std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
    const auto info = OwnFile(part);
    return info && S_ISREG(info->stx_mode);
  });
  const auto digest = own ? Sha256OfFiles(parts) : Result<std::string>(std::string());
  if (!digest || digest->empty()) return {};
  return {"sha256-" + *digest};
}

// Names of its entries, the quickest one first.
std::vector<std::string> Entries(const std::string& trace, bool whole) {
  std::vector<std::string> names;
  const auto info = OwnFile(trace);
  if (info && S_ISREG(info->stx_mode) && format::IsFirstPart(trace))
    return whole ? EntriesOfParts(trace) : names;
  if (info && S_ISDIR(info->stx_mode)) names.push_back("folder-" + Identity(*info));
  if (info && S_ISREG(info->stx_mode))
    names.push_back(fmt::format("file-{}-{}-{}.{:09}", Identity(*info), info->stx_size,
                                info->stx_mtime.tv_sec, info->stx_mtime.tv_nsec));
  if (whole && info && S_ISREG(info->stx_mode))
    if (const auto digest = Sha256OfFile(trace)) names.push_back("sha256-" + *digest);
  return names;
}

constexpr const char* kOwnWord = "own ";
constexpr const char* kAgreedWord = "agreed ";

struct Entry {
  Trust trust = Trust::kNone;
  std::string trace;
};

Entry ReadEntry(const std::string& path) {
  std::ifstream in(path);
  std::string text;
  std::getline(in, text, '\0');
  for (const auto& [word, trust] :
       {std::pair{kOwnWord, Trust::kOwn}, {kAgreedWord, Trust::kAgreed}})
    if (text.starts_with(word)) return {trust, text.substr(std::string_view(word).size())};
  return {};
}

// Entries say which trace they are of; those of traces that are gone go, too.
void RemoveOld(const std::string& folder) {
  constexpr size_t kMost = 2000;
  std::error_code error;
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder, error)) entries.push_back(entry.path());
  if (entries.size() < kMost) return;
  for (const fs::path& entry : entries) {
    if (!fs::exists(ReadEntry(entry).trace, error)) fs::remove(entry, error);
  }
}

}  // namespace

TrustStore::TrustStore() {
  const std::string state = StateFolder();
  if (!state.empty()) folder_ = state + "/deja/trusted";
}

Trust TrustStore::Of(const std::string& trace) const {
  if (folder_.empty() || !OwnFile(folder_)) return Trust::kNone;
  for (const bool whole : {false, true}) {
    for (const std::string& name : Entries(trace, whole)) {
      const std::string entry = folder_ + "/" + name;
      if (OwnFile(entry)) return ReadEntry(entry).trust;
    }
  }
  return Trust::kNone;
}

Status TrustStore::Add(const std::string& trace, Trust trust) const {
  const std::string doing = fmt::format("storing trust: {}", trace);
  if (folder_.empty())
    return Fail(ErrorCode::kNotFound,
                doing + ": neither XDG_STATE_HOME nor HOME is a path; set one of them");
  const fs::path parent = fs::path(folder_).parent_path();
  std::error_code error;
  fs::create_directories(parent.parent_path(), error);
  for (const std::string& made : {parent.string(), folder_})
    if (mkdir(made.c_str(), kOwnFolder) != 0 && errno != EEXIST)
      return FailErrno(doing + ": making " + made, errno);
  RemoveOld(folder_);
  const std::string text =
      (trust == Trust::kOwn ? kOwnWord : kAgreedWord) + fs::absolute(trace, error).string();
  for (const std::string& name : Entries(trace, true)) {
    const std::string entry = folder_ + "/" + name;
    const int fd = open(entry.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kOwnFile);
    if (fd < 0) return FailErrno(doing + ": writing " + entry, errno);
    const ssize_t n = write(fd, text.data(), text.size());
    close(fd);
    if (n < 0) return FailErrno(doing + ": writing " + entry, errno);
  }
  return {};
}

}  // namespace deja::cli

#include "cli/record/trace_claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "common/process/process_identity.h"
#include "format/layout/rank_folder.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFirstLine = "deja job 1";

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::optional<uint32_t> NumberIn(const char* name) {
  std::string text = Variable(name);
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos || text.size() > 9)
    return std::nullopt;
  return static_cast<uint32_t>(std::stoul(text));
}

// The key of processes that a shell or a launcher has started one by one: the parent and its start
// time.
std::string ParentKey() {
  return fmt::format("parent:{}:{}", getppid(), StartTicks(static_cast<uint32_t>(getppid())));
}

constexpr uintmax_t kMostJobFile = 4096;

struct JobFile {
  std::string id;
  std::string key;
};

std::optional<JobFile> ReadJobFile(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kMostJobFile)
    return std::nullopt;
  std::ifstream file(path);
  std::string first, id, key;
  if (!std::getline(file, first) || first != kFirstLine) return std::nullopt;
  if (!std::getline(file, id) || !std::getline(file, key)) return std::nullopt;
  if (id.rfind("id ", 0) != 0 || key.rfind("key ", 0) != 0) return std::nullopt;
  return JobFile{id.substr(3), key.substr(4)};
}

std::string RandomHex() {
  uint8_t bytes[16];
  RandomBytes(bytes, sizeof bytes);
  std::string hex;
  for (uint8_t byte : bytes) hex += fmt::format("{:02x}", byte);
  return hex;
}

bool HasRanks(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error))
    if (format::ParseRankFolderName(entry.path().filename().string())) return true;
  return false;
}

bool IsEmpty(const std::string& directory) {
  std::error_code error;
  return fs::is_empty(directory, error) && !error;
}

// Only what Deja itself writes is ever removed.
Status RemoveTrace(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    std::string name = entry.path().filename().string();
    bool ours = name == "job" || format::ParseRankFolderName(name) ||
                name.rfind("pending-", 0) == 0 || format::IsChildFolderName(name) ||
                name.rfind("deja-", 0) == 0 || name.rfind("mark-", 0) == 0;
    if (!ours)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("writing: {}: it holds '{}', no part of a trace, so --force left it "
                              "alone; give another --out, or remove it yourself",
                              directory, name));
  }
  fs::remove_all(directory, error);
  if (error) return FailErrno("removing the old trace " + directory, error.value());
  return {};
}

// Writes `job` so that it appears complete or not at all. False if there is one already.
Result<bool> WriteJobFile(const std::string& directory, const JobFile& job) {
  std::string temporary = fmt::format("{}/job.{}", directory, getpid());
  {
    std::ofstream file(temporary);
    file << kFirstLine << "\nid " << job.id << "\nkey " << job.key << "\n";
    if (!file.flush()) return FailErrno("writing: " + temporary, errno);
    chmod(temporary.c_str(), 0600);
  }
  bool made = link(temporary.c_str(), (directory + "/job").c_str()) == 0;
  int link_error = errno;
  unlink(temporary.c_str());
  if (!made && link_error != EEXIST) return FailErrno("writing: " + directory + "/job", link_error);
  return made;
}

// A process of the same job that has not been recorded here yet; a launcher may restart its ranks.
bool MayJoin(const std::string& directory, const JobFile& job,
             const std::optional<std::string>& shared_key, uint32_t rank) {
  if (!shared_key || job.key != *shared_key) return false;
  std::error_code error;
  return !fs::exists(directory + "/" + format::MakeRankFolderName(rank, 0), error) ||
         NumberIn("TORCHELASTIC_RESTART_COUNT").value_or(0) > 0;
}

// True if `path` still names what `fd` has open.
bool IsFile(int fd, const std::string& path) {
  struct stat open_file {};
  struct stat named {};
  return fstat(fd, &open_file) == 0 && stat(path.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

}  // namespace

bool TraceClaim::CanJoin(const std::string& directory) {
  uint32_t rank = 0;
  std::optional<std::string> key = SharedJobKey(rank);
  std::optional<JobFile> job = ReadJobFile(directory + "/job");
  // Without a job file: it is about to be written by one of this job, or never will be.
  return job ? MayJoin(directory, *job, key, rank) : key && !HasRanks(directory);
}

std::optional<std::string> SharedJobKey(uint32_t& rank) {
  auto has = [&](const char* rank_name) {
    auto number = NumberIn(rank_name);
    if (number) rank = *number;
    return number.has_value();
  };
  if (has("OMPI_COMM_WORLD_RANK"))
    return "ompi:" + Variable("PMIX_NAMESPACE") + Variable("OMPI_MCA_ess_base_jobid");
  if (has("PMIX_RANK")) return "pmix:" + Variable("PMIX_NAMESPACE");
  if (has("PMI_RANK")) return "pmi:" + Variable("PMI_JOBID") + Variable("PMI_ID") + ParentKey();
  if (!Variable("SLURM_STEP_ID").empty() && has("SLURM_PROCID"))
    return "slurm:" + Variable("SLURM_JOB_ID") + "." + Variable("SLURM_STEP_ID");
  if (has("RANK") && NumberIn("WORLD_SIZE")) {
    std::string port = Variable("MASTER_PORT");
    std::string run = Variable("TORCHELASTIC_RUN_ID");
    if (port.empty() && run.empty()) return ParentKey();
    return fmt::format("env:{}:{}:{}", run, Variable("MASTER_ADDR"), port);
  }
  return std::nullopt;
}

Result<TraceClaim> TraceClaim::Make(const std::string& directory, bool force) {
  uint32_t rank = 0;
  std::optional<std::string> shared_key = SharedJobKey(rank);
  JobFile job{RandomHex(), shared_key ? *shared_key : "one:" + RandomHex()};
  std::string path = directory + "/job";
  for (int attempt = 0; attempt < 20; ++attempt) {
    std::error_code error;
    // Only this user may read what is recorded.
    fs::create_directories(fs::path(directory).parent_path(), error);
    if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
      return FailErrno("making the trace directory " + directory, errno);
    if (IsEmpty(directory)) chmod(directory.c_str(), 0700);
    std::optional<JobFile> there = ReadJobFile(path);
    if (!there) {
      if (HasRanks(directory) || !IsEmpty(directory)) {
        // Other processes of this job may be writing their temporary files this instant.
        if (!HasRanks(directory) && shared_key && attempt < 5) {
          usleep(20000);
          continue;
        }
        if (!force || attempt > 5)
          return Fail(ErrorCode::kInvalidArgument,
                      fmt::format("writing: {}: the folder is not empty; give another --out, or "
                                  "--force to replace an old trace",
                                  directory));
        DEJA_RETURN_IF_ERROR(RemoveTrace(directory));
        continue;
      }
      auto made = WriteJobFile(directory, job);
      if (!made && !fs::exists(directory)) continue;  // its last user has just removed it
      if (!made) return tl::unexpected(made.error());
      there = *made ? job : ReadJobFile(path);
      if (!there) continue;
    }
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) continue;
    bool mine = there->id == job.id;
    if (!mine && !MayJoin(directory, *there, shared_key, rank)) {
      bool running = flock(fd, LOCK_EX | LOCK_NB) != 0;
      close(fd);
      if (running)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("writing: {}: another job is recorded there; give another --out",
                                directory));
      if (!force)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("writing: {}: it holds a trace already; give another --out, or "
                                "--force to replace it",
                                directory));
      DEJA_RETURN_IF_ERROR(RemoveTrace(directory));
      continue;
    }
    if (flock(fd, LOCK_SH) != 0 || !IsFile(fd, path)) {
      close(fd);  // removed by the one that was last before us
      continue;
    }
    return TraceClaim(directory, there->id, shared_key.has_value(), fd);
  }
  return Fail(ErrorCode::kIo, fmt::format("making the trace directory {}: other processes keep "
                                          "changing it; give another --out",
                                          directory));
}

TraceClaim::TraceClaim(TraceClaim&& other) noexcept
    : directory_(std::move(other.directory_)),
      job_id_(std::move(other.job_id_)),
      is_shared_(other.is_shared_),
      fd_(other.fd_) {
  other.fd_ = -1;
}

TraceClaim::~TraceClaim() {
  if (fd_ >= 0) close(fd_);
}

bool TraceClaim::IsLast() {
  return flock(fd_, LOCK_EX | LOCK_NB) == 0;
}

void TraceClaim::RemoveIfEmpty() {
  if (HasRanks(directory_)) return;
  unlink((directory_ + "/job").c_str());
  rmdir(directory_.c_str());
}

}  // namespace deja::cli

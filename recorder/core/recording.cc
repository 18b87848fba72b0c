#include "recorder/core/recording.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "api/c10d_table.h"
#include "api/curand_table.h"
#include "api/libc_table.h"
#include "api/mpi_table.h"
#include "api/nccl_table.h"
#include "format/layout/child_folder.h"
#include "preload/process/process_name.h"
#include "preload/symbols/mpi_library.h"
#include "preload/symbols/real_symbols.h"
#include "recorder/facts/rank_identity.h"

namespace deja::recorder {
namespace {

// The version of the library that serves the program, asked of itself.
uint32_t RealNcclVersion() {
  auto get_version = reinterpret_cast<int (*)(int*)>(preload::RealNccl("ncclGetVersion"));
  int version = 0;
  if (get_version == nullptr || get_version(&version) != 0 || version < 0) return 0;
  return static_cast<uint32_t>(version);
}

bool ParseJobId(std::string_view hex, std::array<char, 16>& id) {
  if (hex.size() != 2 * id.size()) return false;
  for (size_t i = 0; i < id.size(); ++i) {
    auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
    id[i] = static_cast<char>(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
  }
  return true;
}

}  // namespace

void SayOnce(std::string_view text) {
  char line[1024];
  size_t size = 0;
  for (std::string_view part : {std::string_view("deja: "), text, std::string_view("\n")}) {
    size_t n = std::min(part.size(), sizeof line - 1 - size);
    std::memcpy(line + size, part.data(), n);
    size += n;
  }
  line[size - 1] = '\n';
  [[maybe_unused]] ssize_t ignored = write(STDERR_FILENO, line, size);
}

Recording::Recording(const Config& recorded_config, LogFactory make_log)
    : config(recorded_config), make_log_(make_log), pid_(static_cast<pid_t>(syscall(SYS_getpid))) {
  facts.Begin();
  is_child_ = preload::HasProcessName() && preload::OwnProcessName().IsChild();
  if (is_child_)
    writer.SetRelief([](void* self) { static_cast<Recording*>(self)->BecomeChild(); }, this);
}

bool Recording::IsThisProcess() const {
  return static_cast<pid_t>(syscall(SYS_getpid)) == pid_;
}

bool Recording::GoLive() {
  if (writer.live()) return true;
  if (off()) return false;
  Hold hold(lock_);
  if (writer.live()) return true;
  if (off()) return false;
  format::RankLogOptions options = LogOptions(config, is_child_);
  if (is_child_) {
    const preload::ProcessName& name = preload::OwnProcessName();
    options.origin = {std::string(name.root_view()), name.path};
  }
  Result<std::unique_ptr<format::RankLog>> made = make_log_(options);
  if (!made) {
    if (!off_.exchange(true)) SayOnce("this process is not recorded: " + made.error().message);
    return false;
  }
  format::RankLog* log = made->release();  // never destroyed
  log_.store(log, std::memory_order_release);
  writer.GoLive(*log);
  return true;
}

void Recording::FillHeader(format::TraceHeader& header) {
  facts.Fill(header);
  header.level = static_cast<uint32_t>(config.level);
  header.inputs = static_cast<uint32_t>(config.inputs) + 1;
  header.names_interpreter_waits = true;
  header.names_python_locks = true;
  if (ParseJobId(config.job_id, job_id_))
    header.job_id = std::string_view(job_id_.data(), job_id_.size());
  auto add = [&header](std::span<const api::ApiInfo> table) {
    for (const api::ApiInfo& api : table) header.apis.push_back({api.id, api.name});
  };
  add(api::NcclTable());
  add(api::LibcTable());
  if (preload::RealMpi("MPI_Init") != nullptr) add(api::MpiTable());
  add(api::C10dTable());
  add(api::CurandTable());
  if (!preload::HasProcessName()) return;
  const preload::ProcessName& name = preload::OwnProcessName();
  header.origin.root = name.root_view();
  header.origin.path = name.path;
}

void Recording::BecomeChild() {
  if (!is_child_ || has_folder_.load(std::memory_order_acquire) || !GoLive()) return;
  {
    Hold hold(lock_);
    if (has_folder_.load(std::memory_order_relaxed) || off()) return;
    facts.Complete("", 0, SecretRule(config.keep_env, config.mask));
    format::TraceHeader header;
    FillHeader(header);
    header.process.environment.clear();  // a child is started by its parent
    if (!log()->BecomeChild(header)) {
      if (!off_.exchange(true))
        SayOnce("a child process is not recorded: its folder cannot be made");
      return;
    }
    has_folder_.store(true, std::memory_order_release);
  }
  preload::ReportModules(writer);
}

void Recording::BecomeRank(int rank, int nranks) {
  if (is_rank_.load(std::memory_order_acquire) || !GoLive()) return;
  char nccl_path[4096] = {};
  preload::RealNcclPath(nccl_path, sizeof nccl_path);
  uint32_t nccl_version = RealNcclVersion();
  Hold hold(lock_);
  if (is_rank_.load(std::memory_order_relaxed) || off()) return;
  facts.Complete(nccl_path, nccl_version, SecretRule(config.keep_env, config.mask));
  format::TraceHeader header;
  FillHeader(header);
  RankIdentity identity = FindRankIdentity(rank, nranks);
  header.rank = identity.rank;
  header.world_size = identity.world_size;
  header.local_rank = identity.local_rank;
  Status status = log()->BecomeRank(header);
  if (!status) {
    off_.store(true);  // the log has said why
    return;
  }
  has_folder_.store(true, std::memory_order_release);
  is_rank_.store(true, std::memory_order_release);
  // A crash names modules by number, and its handler cannot look for new ones.
  preload::ReportModules(writer);
  if (preload::HasProcessName()) KeepLifeBefore(preload::OwnProcessName().path);
}

void Recording::BeForked() {
  if (off() || writer.live() || !preload::HasProcessName()) return;
  writer.InheritStaged();
  const std::string_view path = preload::OwnProcessName().path;
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return;
  const auto number = static_cast<uint32_t>(std::strtoul(path.data() + slash + 1, nullptr, 10));
  format::Child child;
  child.number = number;
  child.pid = static_cast<uint32_t>(syscall(SYS_getpid));
  writer.Write(child);
}

void Recording::KeepLifeBefore(std::string_view path) {
  const auto parents = format::ForkedFrom(std::string(path));
  if (forked_from_ == nullptr || !parents) return;
  // What is live already has a folder, or will have one.
  if (!forked_from_->writer.live() && !forked_from_->off()) forked_from_->KeepStaged(*parents);
  forked_from_->KeepLifeBefore(*parents);
}

void Recording::KeepStaged(std::string_view path) {
  format::RankLogOptions options = LogOptions(config, true);
  options.origin = {std::string(preload::OwnProcessName().root_view()), std::string(path)};
  Result<std::unique_ptr<format::RankLog>> made = make_log_(options);
  if (!made)
    return SayOnce("this rank's life before its fork is not recorded: " + made.error().message);
  format::RankLog* log = made->release();  // never destroyed
  facts.Complete("", 0, SecretRule(config.keep_env, config.mask));
  format::TraceHeader header;
  FillHeader(header);
  header.origin.path = path;
  if (!log->BecomeChild(header)) return;
  writer.HandOver(*log);
  log->Finish();
}

format::Placed Recording::KeepPayload(const Hash128& hash, std::span<const std::byte> bytes,
                                      uint32_t element_size, uint32_t series) {
  return GoLive() ? log()->PutPayload(hash, bytes, element_size, series) : format::Placed{};
}

}  // namespace deja::recorder

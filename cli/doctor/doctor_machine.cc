// What the machine lets a recording and a replay do.
#include <linux/magic.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/devices/cuda_probe.h"
#include "cli/doctor/doctor.h"
#include "cli/output.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

// What a rank's payloads that are not written yet may take (`deja record --buffer`), events
// besides.
constexpr uint64_t kMemoryOfRank = uint64_t{80} << 20;
constexpr uint64_t kLittleDisk = uint64_t{1} << 30;

// Whether `attempt` succeeds in a process of its own.
bool WorksInChild(bool (*attempt)()) {
  const pid_t pid = fork();
  if (pid == 0) _exit(attempt() ? 0 : 1);
  int status = 1;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void CheckAddresses(std::vector<Finding>& findings) {
  const bool fixed = WorksInChild([] {
    const int old = personality(0xffffffff);
    return old != -1 && personality(static_cast<unsigned long>(old) | ADDR_NO_RANDOMIZE) != -1;
  });
  if (fixed)
    findings.push_back({"addresses", Severity::kOk, "address-space layout can be fixed", ""});
  else
    findings.push_back(
        {"addresses", Severity::kWarning,
         "personality(ADDR_NO_RANDOMIZE) is denied: addresses differ between recording and replay, "
         "and with them whatever a program derives from them (hashes of pointers, order of sets)",
         "in a container: docker run --security-opt seccomp=unconfined, or a profile that allows "
         "personality"});
}

void CheckDebugger(std::vector<Finding>& findings) {
  const std::string gdb = FindExecutable("gdb");
  if (gdb.empty()) {
    findings.push_back({"gdb", Severity::kWarning,
                        "gdb is not in PATH: `deja replay --gdb` does not work here",
                        "install gdb (apt-get install gdb)"});
  } else if (!OutputOf({gdb, "-batch", "-nx", "-ex", "python print(1)"}).text.starts_with("1")) {
    findings.push_back({"gdb", Severity::kWarning,
                        gdb + " has no Python: Deja's commands are not there in gdb",
                        "install a gdb that is built with Python"});
  } else {
    findings.push_back({"gdb", Severity::kOk, gdb + " has Python", ""});
  }
  if (WorksInChild([] { return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0; })) {
    findings.push_back({"ptrace", Severity::kOk, "a debugger can start programs (ptrace)", ""});
    return;
  }
  std::string scope = "unknown";
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  findings.push_back({"ptrace", Severity::kWarning,
                      "ptrace is denied (kernel.yama.ptrace_scope is " + scope +
                          "): `deja replay --gdb` does not work here",
                      "sysctl kernel.yama.ptrace_scope=1; in a container: --cap-add=SYS_PTRACE"});
}

void CheckDisk(const std::string& folder, std::vector<Finding>& findings) {
  std::error_code error;
  fs::path there = folder.empty() ? fs::current_path(error) : fs::absolute(folder, error);
  there = there.lexically_normal();
  while (!fs::is_directory(there, error) && there.has_relative_path()) there = there.parent_path();
  struct statvfs room {};
  if (access(there.c_str(), W_OK | X_OK) != 0 || statvfs(there.c_str(), &room) != 0 ||
      room.f_blocks == 0) {
    findings.push_back({"disk", Severity::kProblem,
                        there.string() + " cannot be written: the job would not be recorded",
                        "name another folder: deja record --out DIR"});
    return;
  }
  const uint64_t free = room.f_bavail * room.f_frsize;
  const std::string what =
      fmt::format("{} free in {}; a trace takes a quarter of it by default (--disk-budget)",
                  HumanBytes(free), there.string());
  if (free >= kLittleDisk)
    findings.push_back({"disk", Severity::kOk, what, ""});
  else
    findings.push_back({"disk", Severity::kWarning, what + ": old contents of tensors go early",
                        "another folder (deja record --out DIR), --keep-steps, or --disk-budget"});
}

void CheckSharedMemory(std::vector<Finding>& findings) {
  struct statfs kind {};
  struct statvfs room {};
  if (statfs("/dev/shm", &kind) != 0 || kind.f_type != TMPFS_MAGIC ||
      statvfs("/dev/shm", &room) != 0) {
    findings.push_back({"shared-memory", Severity::kWarning,
                        "/dev/shm is no tmpfs: what is not written yet goes through the disk",
                        "mount -t tmpfs tmpfs /dev/shm"});
    return;
  }
  const uint64_t free = room.f_bavail * room.f_frsize;
  const uint64_t ranks = free / kMemoryOfRank;
  const std::string what = fmt::format("{} free in /dev/shm: room for {} ranks of this machine",
                                       HumanBytes(free), HumanCount(ranks));
  if (ranks >= 8)
    findings.push_back({"shared-memory", Severity::kOk, what, ""});
  else
    findings.push_back({"shared-memory", Severity::kWarning, what,
                        "docker run --shm-size=2g, or a smaller deja record --buffer"});
}

// Programs in host memory need none, so that there is none is no warning.
void CheckCuda(std::vector<Finding>& findings) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  CudaFound found =
      LookForCuda(visible == nullptr ? std::nullopt : std::optional<std::string>(visible));
  const Severity severity = found.what == CudaFound::What::kDevices  ? Severity::kOk
                            : found.what == CudaFound::What::kFailed ? Severity::kWarning
                                                                     : Severity::kNote;
  // What a replay can do about it is no help before a recording.
  if (found.what == CudaFound::What::kNoDevice) found.fix = "";
  findings.push_back({"cuda", severity, std::move(found.text), std::move(found.fix)});
}

}  // namespace

void CheckMachine(const DoctorRequest& request, std::vector<Finding>& findings) {
  CheckAddresses(findings);
  CheckDebugger(findings);
  CheckDisk(request.trace_folder, findings);
  CheckSharedMemory(findings);
  CheckCuda(findings);
}

}  // namespace deja::cli

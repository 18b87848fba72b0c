#include "cli/fence/read_rules.h"

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

bool IsBelow(const fs::path& path, const fs::path& folder) {
  const std::string relative = path.lexically_relative(folder).string();
  return !relative.empty() && relative.compare(0, 2, "..") != 0;
}

// Folders that hold more than a program.
bool IsCommon(const fs::path& folder) {
  const char* home = std::getenv("HOME");
  const fs::path own = home != nullptr && home[0] == '/' ? home : "/root";
  if (folder == "/" || IsBelow(own.lexically_normal(), folder)) return true;
  for (const char* common : {"/home", "/root", "/tmp", "/var", "/var/tmp", "/etc", "/opt", "/srv",
                             "/mnt", "/media", "/run", "/dev", "/dev/shm", "/data", "/scratch"})
    if (folder == common) return true;
  return folder.parent_path() == "/home";
}

void AddFolder(const fs::path& path, std::set<std::string>& paths) {
  std::error_code error;
  const fs::path folder = fs::canonical(path, error);
  if (!error && fs::is_directory(folder, error) && !IsCommon(folder)) paths.insert(folder.string());
}

// What is installed below PREFIX/bin's parent.
void AddPrefix(const fs::path& bin, std::set<std::string>& paths) {
  if (bin.filename() != "bin") return;
  for (const char* name : {"bin", "lib", "lib64", "libexec", "share"})
    AddFolder(bin.parent_path() / name, paths);
}

}  // namespace

std::vector<std::string> SystemPaths() {
  return {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sys",
          // of /etc
          "/etc/alternatives", "/etc/ca-certificates", "/etc/fonts", "/etc/group", "/etc/gai.conf",
          "/etc/host.conf", "/etc/hostname", "/etc/hosts", "/etc/inputrc", "/etc/ld.so.cache",
          "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/libibverbs.d",
          "/etc/locale.alias", "/etc/locale.conf", "/etc/localtime", "/etc/machine-id",
          "/etc/magic", "/etc/mime.types", "/etc/nccl.conf", "/etc/networks", "/etc/nsswitch.conf",
          "/etc/openmpi", "/etc/OpenCL", "/etc/os-release", "/etc/debian_version",
          "/etc/redhat-release", "/etc/passwd", "/etc/profile", "/etc/protocols", "/etc/python3",
          "/etc/python3.11", "/etc/resolv.conf", "/etc/rpc", "/etc/services", "/etc/shells",
          "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo", "/etc/timezone", "/etc/ucx",
          // of /dev; devices that may be written to may be read, too (cli/fence/landlock.cc)
          "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd"};
}

std::vector<std::string> ProgramPaths(const std::string& executable, const std::string& argv0,
                                      const std::string& working_directory) {
  std::set<std::string> paths = {executable};
  const fs::path folder = fs::path(executable).parent_path();
  AddFolder(folder, paths);
  AddPrefix(folder, paths);
  if (argv0.find('/') != std::string::npos) {
    std::error_code error;
    const fs::path given = fs::path(working_directory) / argv0;
    const fs::path environment = given.parent_path().parent_path();
    if (fs::exists(environment / "pyvenv.cfg", error)) AddFolder(environment, paths);
  }
  AddFolder(working_directory, paths);
  return {paths.begin(), paths.end()};
}

}  // namespace deja::cli

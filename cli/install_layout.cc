#include "cli/install_layout.h"

#include <filesystem>
#include <initializer_list>

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

// The first of `candidates`, relative to the folder of the executable, that exists.
Result<std::string> FindFirst(const std::string& what,
                              std::initializer_list<std::string> candidates) {
  fs::path bin = fs::path(OwnPath()).parent_path();
  std::string tried;
  for (const std::string& candidate : candidates) {
    fs::path path = bin / candidate;
    std::error_code error;
    if (fs::exists(path, error)) return fs::canonical(path, error).string();
    tried += (tried.empty() ? " " : ", ") + path.lexically_normal().string();
  }
  return Fail(ErrorCode::kNotFound,
              "looking for " + what + ": it is in none of these places:" + tried +
                  "; build or install Deja completely (cmake --build, cmake --install)");
}

}  // namespace

std::string OwnPath() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).string();
}

Result<std::string> FindLibrary(const std::string& name) {
  DEJA_ASSIGN_OR_RETURN(std::string path,
                        FindFirst(name, {"../lib/" + name, "../lib/deja/" + name,
                                         "../" DEJA_INSTALL_LIBDIR "/deja/" + name}));
  // The loader would take the parts for libraries, find none, and start the program without Deja.
  if (path.find_first_of(" :") != std::string::npos) {
    return Fail(ErrorCode::kInvalidArgument,
                "loading Deja: " + path +
                    ": LD_PRELOAD cannot name a path with a space or a colon; install or build "
                    "Deja in another folder");
  }
  return path;
}

Result<std::string> FindLoopbackDirectory() {
  return FindFirst("the loopback library's folder",
                   {"../lib/nccl", "../lib/deja/nccl", "../" DEJA_INSTALL_LIBDIR "/deja/nccl"});
}

Result<std::string> FindGdbScript(const std::string& name) {
  return FindFirst(name, {"../gdb/" + name, "../share/deja/gdb/" + name});
}

Result<std::string> FindPythonDirectory() {
  DEJA_ASSIGN_OR_RETURN(std::string path,
                        FindFirst("Deja's Python side", {"../python", "../share/deja/python"}));
  if (path.find(':') != std::string::npos) {
    return Fail(ErrorCode::kInvalidArgument, "loading Deja: " + path +
                                                 ": PYTHONPATH cannot name a path with a colon; "
                                                 "install or build Deja in another folder");
  }
  return path;
}

}  // namespace deja::cli

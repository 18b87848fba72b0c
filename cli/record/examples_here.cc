#include "cli/record/examples_here.h"

#include <fmt/format.h>

#include <array>

#include "cli/doctor/doctor.h"

namespace deja::cli {
namespace {

struct Launcher {
  const char* program;
  const char* command;
};

constexpr std::array kLaunchers = {
    Launcher{"torchrun", "deja record -- torchrun --nproc-per-node 4 train.py"},
    Launcher{"mpirun", "deja record -- mpirun -n 4 ./train"},
    Launcher{"srun", "deja record -- srun -n 4 ./train"},
};

std::string Line(const std::string& command, const std::string& what) {
  return fmt::format("  {:<55} {}", command, what);
}

}  // namespace

std::vector<std::string> ExamplesHere() {
  std::vector<std::string> lines;
  for (const Launcher& launcher : kLaunchers) {
    const std::string path = FindExecutable(launcher.program);
    if (!path.empty()) lines.push_back(Line(launcher.command, fmt::format("{} is here", path)));
  }
  lines.push_back(Line("deja record --loopback -n 4 -- ./train", "four ranks, without NCCL"));
  lines.push_back(Line("deja record --single -- python3 script.py", "one process"));
  return lines;
}

}  // namespace deja::cli

#include "check/evidence/surroundings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "common/text/hex_text.h"

namespace deja::check {
namespace {

// Of these the program, its libraries or their threads read how they are to compute.
constexpr std::array<std::string_view, 11> kPrefixes = {"NCCL_", "CUDA_",   "TORCH_", "PYTORCH_",
                                                        "OMP_",  "MKL_",    "GLOO_",  "TF_",
                                                        "XLA_",  "CUBLAS_", "CUDNN_"};
constexpr std::array<std::string_view, 4> kNames = {"LD_LIBRARY_PATH", "PYTHONPATH",
                                                    "PYTHONHASHSEED", "LD_PRELOAD"};
// These differ from rank to rank on purpose.
constexpr std::array<std::string_view, 6> kOfRanks = {
    "CUDA_VISIBLE_DEVICES",    "NCCL_COMM_ID",           "NCCL_HOSTID", "NCCL_SOCKET_IFNAME",
    "TORCHELASTIC_ERROR_FILE", "CUDA_MPS_PIPE_DIRECTORY"};

bool Matters(std::string_view name) {
  if (std::find(kOfRanks.begin(), kOfRanks.end(), name) != kOfRanks.end()) return false;
  if (name.rfind("TORCHELASTIC_", 0) == 0) return false;
  if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return true;
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.rfind(prefix, 0) == 0; });
}

}  // namespace

void AddLibrary(std::string_view path, std::string_view build_id, Surroundings& surroundings) {
  const bool is_file = path.rfind('/', 0) == 0;
  if (is_file && !build_id.empty())
    surroundings.emplace_back(fmt::format("library {}", path), HexText(build_id));
}

void AddSurroundings(const format::TraceHeader& header, Surroundings& surroundings) {
  const format::ProcessInfo& process = header.process;
  const auto add = [&](std::string_view name, std::string value) {
    if (!value.empty()) surroundings.emplace_back(name, std::move(value));
  };
  add("executable", std::string(process.executable));
  add("executable's build id", HexText(process.executable_build_id));
  add("processor", std::string(process.cpu_model));
  add("processors", fmt::format("{}", process.cpu_count));
  add("kernel", std::string(process.kernel));
  if (process.nccl_version != 0) add("NCCL", fmt::format("{}", process.nccl_version));
  for (const std::string_view entry : process.environment) {
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos || !Matters(entry.substr(0, equals))) continue;
    add(fmt::format("environment {}", entry.substr(0, equals)),
        std::string(entry.substr(equals + 1)));
  }
  std::sort(surroundings.begin(), surroundings.end());
  surroundings.erase(std::unique(surroundings.begin(), surroundings.end()), surroundings.end());
}

}  // namespace deja::check

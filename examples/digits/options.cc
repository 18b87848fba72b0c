#include "options.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <utility>

namespace digits {
namespace {

constexpr std::array<std::pair<const char*, Mode>, 4> kModes = {{{"ddp", Mode::kDdp},
                                                                 {"sharded", Mode::kSharded},
                                                                 {"pipeline", Mode::kPipeline},
                                                                 {"hybrid", Mode::kHybrid}}};
constexpr std::array<std::pair<const char*, Fault>, 7> kFaults = {{{"none", Fault::kNone},
                                                                   {"crash", Fault::kCrash},
                                                                   {"nan", Fault::kNan},
                                                                   {"desync", Fault::kDesync},
                                                                   {"hang", Fault::kHang},
                                                                   {"shape", Fault::kShape},
                                                                   {"corrupt", Fault::kCorrupt}}};

constexpr std::array<std::pair<const char*, Processor>, 2> kDevices = {
    {{"cpu", Processor::kCpu}, {"cuda", Processor::kCuda}}};

constexpr const char* kHelp =
    R"(usage: digits_train [options]

Trains a small network on handwritten digits, data parallel on the NCCL API. Start one process a
rank, with RANK and WORLD_SIZE (or what mpirun or srun set) and NCCL_COMM_ID=host:port in the
environment.

  --mode=MODE          ddp       gradients all-reduced in buckets while the backward pass runs
                                 (default)
                       sharded   reduce-scatter, each rank updates its share, all-gather
                       pipeline  two stages, send and receive only; an even number of ranks
                       hybrid    pipeline stages and replicas, each with a communicator
  --fault=FAULT        a bug that shows when the random numbers happen to be so: crash, nan,
                       desync, hang, shape, corrupt, or none (default)
  --device=DEVICE      cpu       host memory (default)
                       cuda      a GPU: LOCAL_RANK says which, else the rank; the libnccl.so.2 that
                                 is loaded must be one for GPUs
  --seed=N             repeat a run; without it, every run draws other numbers
  --steps=N            steps to train (600)
  --batch=N            samples a replica and step (32)
  --microbatches=N     parts of a batch in a pipeline (4)
  --bucket-kib=N       least size of a gradient bucket (4)
  --learning-rate=X    of Adam, at the start; it falls to zero by a cosine (0.008)
  --log-every=N        steps between two lines of output (50)
  --snapshot-every=N   steps between two snapshots of the weights for Deja (50)
  --data=FILE          digits.txt (default: data/digits.txt beside the program)
  --id-file=FILE       where rank 0 leaves the communicator's id for the others; instead of
                       NCCL_COMM_ID
)";

[[noreturn]] void Usage(const std::string& problem) {
  std::fprintf(stderr, "digits_train: %s; see --help\n", problem.c_str());
  std::exit(2);
}

template <class T>
T ParseNumber(std::string_view name, const std::string& text, T least) {
  char* end = nullptr;
  errno = 0;
  T value;
  if constexpr (std::is_same_v<T, double>) {
    value = std::strtod(text.c_str(), &end);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    value = std::strtoull(text.c_str(), &end, 0);
  } else {
    const long number = std::strtol(text.c_str(), &end, 10);
    value = static_cast<T>(number);
    if (value != number) errno = ERANGE;
  }
  if (text.empty() || *end != '\0' || errno != 0 || !(value >= least)) {
    Usage("--" + std::string(name) + " cannot be '" + text + "'");
  }
  return value;
}

template <class Names>
auto ParseName(std::string_view name, const std::string& text, const Names& names) {
  for (const auto& [known, value] : names) {
    if (text == known) return value;
  }
  Usage("--" + std::string(name) + " cannot be '" + text + "'");
}

// Sets the option and says whether there is one of that name.
bool SetOption(std::string_view name, const std::string& value, Options* options) {
  const auto number = [&](int* target) { *target = ParseNumber<int>(name, value, 1); };
  if (name == "mode") {
    options->mode = ParseName(name, value, kModes);
  } else if (name == "fault") {
    options->fault = ParseName(name, value, kFaults);
  } else if (name == "device") {
    options->device = ParseName(name, value, kDevices);
  } else if (name == "seed") {
    options->seed = ParseNumber<uint64_t>(name, value, 0);
  } else if (name == "steps") {
    number(&options->steps);
  } else if (name == "batch") {
    number(&options->batch);
  } else if (name == "microbatches") {
    number(&options->microbatches);
  } else if (name == "bucket-kib") {
    number(&options->bucket_kib);
  } else if (name == "log-every") {
    number(&options->log_every);
  } else if (name == "snapshot-every") {
    number(&options->snapshot_every);
  } else if (name == "learning-rate") {
    options->learning_rate = ParseNumber<double>(name, value, 0.0);
  } else if (name == "data") {
    options->data = value;
  } else if (name == "id-file") {
    options->id_file = value;
  } else {
    return false;
  }
  return true;
}

}  // namespace

const char* ModeName(Mode mode) {
  for (const auto& [name, value] : kModes) {
    if (value == mode) return name;
  }
  return "?";
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      std::fputs(kHelp, stdout);
      std::exit(0);
    }
    if (argument.compare(0, 2, "--") != 0) Usage("what is '" + argument + "'?");
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::string value;
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < argc) {
      value = argv[++i];
    }
    if (!SetOption(name, value, &options)) Usage("there is no option --" + name);
  }
  const bool pipelined = options.mode == Mode::kPipeline || options.mode == Mode::kHybrid;
  if (pipelined && options.batch % options.microbatches != 0) {
    Usage("--batch must be a multiple of --microbatches");
  }
  return options;
}

}  // namespace digits

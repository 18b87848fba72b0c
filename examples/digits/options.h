// The command line.
#ifndef DEJA_EXAMPLES_DIGITS_OPTIONS_H_
#define DEJA_EXAMPLES_DIGITS_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace digits {

enum class Mode { kDdp, kSharded, kPipeline, kHybrid };
enum class Fault { kNone, kCrash, kNan, kDesync, kHang, kShape, kCorrupt };

enum class Processor { kCpu, kCuda };

const char* ModeName(Mode mode);

struct Options {
  Mode mode = Mode::kDdp;
  Fault fault = Fault::kNone;
  Processor device = Processor::kCpu;
  int steps = 600;
  int batch = 32;        // samples a replica and step
  int microbatches = 4;  // into which a pipeline cuts a batch
  int bucket_kib = 4;    // a bucket is reduced once it holds this much
  int log_every = 50;    // steps between the lines of the loss
  int snapshot_every = 50;
  double learning_rate = 8e-3;
  std::optional<uint64_t> seed;
  std::string data;     // digits.txt; empty: looked for beside the program
  std::string id_file;  // hands the communicator's id over where NCCL_COMM_ID does not
};

// Prints what is wrong, or the help, and exits when there is nothing to run.
Options ParseOptions(int argc, char** argv);

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_OPTIONS_H_

// Seen: what a rank's recording shows besides calls. It has parameters at optimizer steps, batches
// of loaders, tensors that changed too early, collections of garbage, sockets, and what the program
// read.
//
// Notes of Deja's side of Python (python/deja/evidence/seen.py) have most of it. Sites are numbers
// of the summary's. Values; no ownership.
#ifndef DEJA_CHECK_EVIDENCE_SEEN_H_
#define DEJA_CHECK_EVIDENCE_SEEN_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace deja::check {

// Digests are 64 bits. 0 of a gradient or a weight: all its bytes are zero.
inline constexpr uint64_t kUnknownDigest = ~uint64_t{0};
inline constexpr uint64_t kNoGradient = ~uint64_t{0} - 1;

struct WeightSeen {
  uint32_t optimizer = 0;
  uint64_t step = 0;  // of the optimizer, which begins; from 1
  std::string name;
  uint64_t weight = kUnknownDigest;
  uint64_t gradient = kUnknownDigest;
  std::vector<uint64_t> replicas;  // ranks on which the program's framework keeps it equal
  uint32_t made = 0;               // site
  uint32_t at = 0;
  uint64_t time_ns = 0;
};

struct OptimizerSeen {
  uint32_t optimizer = 0;
  uint64_t step = 0;
  std::string kind;
  std::string learning_rate;
  uint64_t weights = kUnknownDigest;
  uint64_t gradients = kUnknownDigest;
  uint64_t state = kUnknownDigest;
  uint32_t at = 0;
  uint64_t time_ns = 0;
};

// The state of a generator of random numbers, as a step begins.
struct GeneratorSeen {
  std::string name;  // "rng/torch"
  uint64_t digest = 0;
  uint64_t time_ns = 0;
};

struct BatchSeen {
  uint32_t loader = 0;
  uint64_t pass = 0;
  uint64_t batch = 0;          // from 1
  std::vector<uint64_t> rows;  // empty: they have no numbers
  uint64_t size = 0;           // of the data; 0: unknown
  std::string sampler;
  bool shuffles = false;
  std::string epoch;
  bool trains = false;
  uint64_t digest = kUnknownDigest;
  uint32_t at = 0;
  uint64_t time_ns = 0;
};

struct PassSeen {
  uint32_t loader = 0;
  uint64_t pass = 0;
  uint64_t batches = 0;
  uint32_t at = 0;
  uint64_t time_ns = 0;
};

// A tensor that the program changed while an operation, or a thread that saves it, needed it.
struct ChangeSeen {
  std::string what;  // "allreduce"; or the tensor's name
  std::string file;  // where it was saved; empty: an operation
  std::string thread;
  uint64_t times = 0;
  uint32_t given = 0;  // site: the operation was issued, the thread was given it
  uint32_t at = 0;     // site: it ended
  uint64_t time_ns = 0;
};

struct Interval {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

// bind() that failed, or connect().
struct SocketSeen {
  std::string local;
  std::string remote;
  uint32_t error = 0;
  bool is_bind = false;
  uint64_t time_ns = 0;
};

// kLook: whether a file is there. kCaught: an exception, which the program has caught.
enum class InputKind : uint8_t { kFile, kFolder, kLook, kStore, kEntropy, kClock, kCaught };

// Something that the program read, or that happened to it.
struct InputSeen {
  InputKind kind = InputKind::kFile;
  std::string name;  // path, key, clock
  uint64_t value = 0;
  std::string shown;  // the value in words
  uint32_t thread = 0;
  uint64_t time_ns = 0;
};

struct Seen {
  std::vector<WeightSeen> weights;
  std::vector<OptimizerSeen> optimizers;
  std::vector<GeneratorSeen> generators;
  std::vector<BatchSeen> batches;
  std::vector<PassSeen> passes;
  std::vector<ChangeSeen> changes;
  std::vector<Interval> garbage;
  std::vector<SocketSeen> sockets;
  std::vector<InputSeen> inputs;  // the first ones and the last ones; in their order

  // Calls `change(uint32_t& site)` for each site in it.
  template <typename Change>
  void ForEachSite(const Change& change) {
    for (WeightSeen& one : weights) change(one.made), change(one.at);
    for (OptimizerSeen& one : optimizers) change(one.at);
    for (BatchSeen& one : batches) change(one.at);
    for (PassSeen& one : passes) change(one.at);
    for (ChangeSeen& one : changes) change(one.given), change(one.at);
  }
};

// Names of generators from which the run draws: their state changes. The state of another one is
// of no consequence: Python's own is seeded by entropy, whether the program uses it or not.
std::set<std::string> UsedGenerators(const std::vector<GeneratorSeen>& generators);

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_SEEN_H_

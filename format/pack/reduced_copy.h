// ReducedCopy: a copy of a trace with all events and only some of the payloads, for a bundle.
//
// What is left out, in this order, until the copy fits: payloads of ranks that were not asked for;
// payloads of the oldest steps; all payloads. A frame LeftOut in each folder says so. A payload
// that a kept rank needs and others hold (TraceHeader.shares_with) comes into the folder of the
// kept rank.
//
// Owner: WriteBundle. One thread calls, all processors work. Memory: an entry for each payload that
// the kept ranks refer to.
#ifndef DEJA_FORMAT_PACK_REDUCED_COPY_H_
#define DEJA_FORMAT_PACK_REDUCED_COPY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/result.h"
#include "format/pack/bundle_writer.h"
#include "format/pack/checkpoint_prediction.h"
#include "format/pack/ordered_work.h"
#include "format/trace/payload_uses.h"
#include "format/trace/trace.h"

namespace deja::format {

class FrameWriter;
class PayloadCopier;

class ReducedCopy {
 public:
  // `top`: the name of the trace's folder in the bundle, whose bytes count, too.
  ReducedCopy(Trace& trace, const PackOptions& options, std::string top)
      : trace_(trace), options_(options), top_(std::move(top)) {}

  // Writes the copy into `directory`, which exists and is empty.
  Status Write(const std::string& directory);

  // Names of the folders that were written, and what was left out of them.
  [[nodiscard]] std::vector<std::string> folders() const;
  [[nodiscard]] std::vector<BundleOmission> omissions() const;

 private:
  struct Part {
    uint32_t rank = 0;
    std::string child;
    const RankReader* reader = nullptr;
    std::string out;              // the copy's folder
    bool chosen = false;          // its payloads are asked for
    size_t name_bytes = 0;        // of the folder in the bundle, with both slashes
    uint64_t events_bytes = 0;    // of the file without index and footer
    uint64_t payloads_bytes = 0;  // the same; 0: no such file yet
    uint64_t end_bytes = 0;       // of indexes and footers, at most
    bool end_is_exact = false;
    TraceHeader header;
    Index index;
    Footer footer;
    LeftOut left_out;
    std::unique_ptr<CheckpointPredictor> predictor;  // null: checkpoints are not predicted
  };
  struct Want {
    size_t part;
    PayloadUse use;
  };
  // What to go back to if a group of payloads turns out not to fit.
  struct Undo {
    size_t part;
    uint64_t payloads_bytes;
    uint64_t end_bytes;
    bool end_is_exact;
    size_t payloads;
  };
  using Wants = std::vector<Want>;

  Status FindParts(const std::string& directory);
  Status ChooseRanks();
  Status CopyAllEvents();
  Status KeepPayloads();
  [[nodiscard]] Wants FindWants(const std::vector<size_t>& parts) const;
  [[nodiscard]] bool IsWanted(Period period) const;
  // Writes payloads, period by period, as long as they fit. False if they do not all.
  Result<bool> KeepWhatFits(const Wants& wants);
  // Writes payloads of one period: all or, if that is too much, none and false.
  Result<bool> KeepGroup(std::span<const Want> group);
  Result<bool> KeepOfPart(std::span<const Want> wants);
  using Hashes = std::unordered_set<Hash128, HashOfHash>;
  [[nodiscard]] bool IsKept(const Hashes& kept, const Hash128& hash) const;
  Status KeepOne(Part& part, const Hash128& hash, uint64_t size, PayloadCopier& copier,
                 const std::function<void(PayloadInfo)>& done);
  Status GoBack(const std::vector<Undo>& undos);
  Status Finish(Part& part);
  // Index, what was left out and footers after what is in the files; `payloads` may be null.
  Status WriteEnd(const Part& part, const LeftOut& left_out, FrameWriter& events,
                  FrameWriter* payloads) const;
  // Bytes that WriteEnd would write: an entry for each chunk counted at its largest, or compressed
  // as it will be.
  void FindEndBytes(Part& part);
  void CountLeftOut(Part& part);
  [[nodiscard]] std::string Describe(const Part& part) const;
  // What folders that share payloads have in common.
  static std::string Sharing(const Part& part);
  // Whether the bundle may have its size. Looks closer where a first estimate says no.
  [[nodiscard]] bool Fits();
  // Whether what is in the files already leaves room.
  [[nodiscard]] bool MayFit() const;
  [[nodiscard]] uint64_t BundleBytes() const;
  [[nodiscard]] int zstd_level() const;
  // Sets one of the sizes that make up a sum.
  static void Resize(uint64_t& sum, uint64_t& part, uint64_t size);
  void Advance(uint64_t bytes);

  Trace& trace_;
  const PackOptions& options_;
  std::string top_;
  OrderedWork work_;
  std::vector<Part> parts_;
  std::vector<uint32_t> chosen_ranks_;  // that come first
  // What is in the copy, by the ranks that share it.
  std::map<std::string, Hashes> kept_;
  std::vector<Period> did_not_fit_;  // of the chosen ranks; of steps the last one
  uint64_t file_bytes_ = 0;          // in files so far
  uint64_t end_bytes_ = 0;           // of the ends of all parts, at most
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_PACK_REDUCED_COPY_H_

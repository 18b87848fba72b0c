// TraceRewriter: what changes strings and bytes of a trace while it is copied into a bundle
// (ReducedCopy). It sees all of the trace first, so that the same string becomes the same one
// everywhere.
//
// Owner: the packing command. One thread calls, in this order: Learn for each process, then Settle.
// Then, for each process, Begin, Rewrite of its header, and Rewrite of its events in the order of
// their file.
#ifndef DEJA_FORMAT_PACK_TRACE_REWRITER_H_
#define DEJA_FORMAT_PACK_TRACE_REWRITER_H_

#include <span>
#include <vector>

#include "common/ids.h"
#include "common/result.h"
#include "format/reader/rank_reader.h"

namespace deja::format {

class TraceRewriter {
 public:
  virtual ~TraceRewriter() = default;

  virtual Status Learn(const RankReader& reader) = 0;
  virtual Status Settle() = 0;
  virtual void Begin(const RankReader& reader) = 0;
  // The views of the header live as long as the rewriter.
  virtual void Rewrite(TraceHeader& header) = 0;
  // Views in the event live until the next call.
  virtual void Rewrite(Event& event) = 0;

  // Hashes by which rewritten events name the payload `hash` of the recording. They are those of
  // what is kept in its place, its own among them if it stays.
  [[nodiscard]] virtual std::vector<Hash128> ReplacementsOf(const Hash128& hash) const = 0;
  // The bytes of such a payload; empty for one that is as it was recorded.
  [[nodiscard]] virtual std::span<const std::byte> BytesOf(const Hash128& hash) const = 0;
};

}  // namespace deja::format

#endif  // DEJA_FORMAT_PACK_TRACE_REWRITER_H_

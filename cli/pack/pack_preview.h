// PackPreview: what a bundle would hold, for `deja pack --dry-run`, and what in it looks like
// secrets.
//
// One thread. Memory: the distinct strings of the trace.
#ifndef DEJA_CLI_PACK_PACK_PREVIEW_H_
#define DEJA_CLI_PACK_PACK_PREVIEW_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "format/pack/trace_rewriter.h"
#include "format/trace/trace.h"

namespace deja::cli {

// A file outside of the run whose bytes, or some of them, are in the trace.
struct KeptFile {
  std::string path;
  uint64_t bytes = 0;
  std::string warning;  // why it should not be given away; empty: no reason was found
};

// Those of all processes of the trace. Contents of files of up to 16 MiB are looked at, too.
Result<std::vector<KeptFile>> ReadKeptFiles(format::Trace& trace);

class PackPreview {
 public:
  // `rewriter`, borrowed, may be null: strings are shown as they would be in the bundle.
  static Result<PackPreview> Make(format::Trace& trace, format::TraceRewriter* rewriter);

  void Print() const;
  [[nodiscard]] nlohmann::json ToJson() const;

 private:
  struct PreviewedFile {
    std::string name;
    uint64_t bytes = 0;
  };
  void AddHeader(const format::TraceHeader& header);
  void AddEvent(const format::Event& event);
  void Add(const char* kind, std::string_view text);
  void AddBytes(const char* kind, uint64_t bytes);

  std::vector<PreviewedFile> files_;
  std::vector<KeptFile> inputs_;
  std::map<std::string, std::set<std::string>> strings_;  // by kind
  std::map<std::string, uint64_t> bytes_;                 // by kind
};

}  // namespace deja::cli

#endif  // DEJA_CLI_PACK_PACK_PREVIEW_H_

// A bundle's own description for people:
// - README.md for its recipient, with the command that replays it
// - manifest.json, with answers to the questions of NCCL's and PyTorch's forms for bug reports
//
// Both are made from the trace as it is packed, so they say nothing that the trace does not.
#ifndef DEJA_CLI_PACK_BUNDLE_TEXTS_H_
#define DEJA_CLI_PACK_BUNDLE_TEXTS_H_

#include <string>
#include <utility>
#include <vector>

#include "format/trace/trace.h"

namespace deja::cli {

// Names and texts. `bundle`: the name of the bundle's file.
std::vector<std::pair<std::string, std::string>> DescribeBundle(format::Trace& trace,
                                                                const std::string& bundle);

}  // namespace deja::cli

#endif  // DEJA_CLI_PACK_BUNDLE_TEXTS_H_

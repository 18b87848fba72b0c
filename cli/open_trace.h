// Opening a trace, with progress where that takes long: a bundle is unpacked first.
//
// Main thread.
#ifndef DEJA_CLI_OPEN_TRACE_H_
#define DEJA_CLI_OPEN_TRACE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "format/trace/trace.h"

namespace deja::cli {

// As format::Trace::Open.
Result<std::unique_ptr<format::Trace>> OpenTrace(const std::string& path);

// The ranks of the trace, each once, in ascending order. Any thread.
std::vector<uint32_t> RankNumbers(const format::Trace& trace);

}  // namespace deja::cli

#endif  // DEJA_CLI_OPEN_TRACE_H_

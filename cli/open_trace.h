// Opening a trace, with progress where that takes long: a bundle is unpacked first.
//
// As format::Trace::Open otherwise. Main thread.
#ifndef DEJA_CLI_OPEN_TRACE_H_
#define DEJA_CLI_OPEN_TRACE_H_

#include <memory>
#include <string>

#include "common/result.h"
#include "format/trace/trace.h"

namespace deja::cli {

Result<std::unique_ptr<format::Trace>> OpenTrace(const std::string& path);

}  // namespace deja::cli

#endif  // DEJA_CLI_OPEN_TRACE_H_

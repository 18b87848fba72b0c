// The formats of `deja export`: each writes a job into a file, or a folder of files.
//
// cli/export/README.md says what each holds. Strings of the trace are plain text in all of them
// (common/text/plain_text.h). Errors are those of writing.
#ifndef DEJA_CLI_EXPORT_FORMATS_H_
#define DEJA_CLI_EXPORT_FORMATS_H_

#include <span>
#include <string>

#include "cli/export/export_source.h"
#include "common/result.h"

namespace deja::cli {

// Perfetto's protobuf: a track for each rank and communicator, flows between ranks.
Status ExportPerfetto(const ExportSource& source, const std::string& path);
// The JSON of chrome://tracing, with the same tracks and flows.
Status ExportChrome(const ExportSource& source, const std::string& path);
// A folder with a dump of PyTorch's Flight Recorder for each rank, as PyTorch pickles it.
Status ExportFlightRecorder(const ExportSource& source, const std::string& path);
// Ranks, communicators, operations with their parts, steps, findings.
Status ExportJson(const ExportSource& source, const std::string& path);
// A row for each rank's part in an operation.
Status ExportCsv(const ExportSource& source, const std::string& path);

struct ExportFormat {
  const char* name;    // "perfetto"
  const char* ending;  // of the default name: ".perfetto-trace"
  Status (*write)(const ExportSource& source, const std::string& path);
};
std::span<const ExportFormat> ExportFormats();

}  // namespace deja::cli

#endif  // DEJA_CLI_EXPORT_FORMATS_H_

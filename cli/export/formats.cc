#include "cli/export/formats.h"

namespace deja::cli {

std::span<const ExportFormat> ExportFormats() {
  static constexpr ExportFormat kFormats[] = {
      {"perfetto", ".perfetto-trace", ExportPerfetto},
      {"chrome", ".chrome.json", ExportChrome},
      {"fr", ".fr", ExportFlightRecorder},
      {"json", ".json", ExportJson},
      {"csv", ".csv", ExportCsv},
  };
  return kFormats;
}

}  // namespace deja::cli

#include "cli/export/parquet.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/doctor/doctor.h"
#include "cli/install_layout.h"

namespace deja::cli {

Result<ParquetTables> WriteParquet(const std::string& trace, const std::string& folder) {
  DEJA_ASSIGN_OR_RETURN(std::string path, FindPythonDirectory());
  if (const char* before = std::getenv("PYTHONPATH"); before != nullptr && *before != '\0')
    path += std::string(":") + before;
  const CommandOutput done = OutputOf(
      {"python3", "-m", "deja.trace_tables", trace, folder, OwnPath()}, {{"PYTHONPATH", path}});
  const auto said = nlohmann::json::parse(done.text, nullptr, false);
  if (said.is_object() && said.contains("error"))
    return Fail(ErrorCode::kInternal,
                "exporting: --format parquet: " + said["error"].get<std::string>());
  if (!done.ok || !said.is_object())
    return Fail(ErrorCode::kNotFound,
                "exporting: --format parquet: python3 did not run to its end; it writes the "
                "tables, and needs pyarrow");
  return ParquetTables{said["rows"].get<std::map<std::string, uint64_t>>(),
                       said["damaged"].get<bool>()};
}

}  // namespace deja::cli

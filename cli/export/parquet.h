// Tables of a trace as a folder of Parquet files.
//
// Deja's Python side writes them (python/deja/trace_tables.py), in the first python3 of PATH, which
// needs pyarrow. A process; main thread only. Errors: kNotFound without such a Python, else what
// that side says.
#ifndef DEJA_CLI_EXPORT_PARQUET_H_
#define DEJA_CLI_EXPORT_PARQUET_H_

#include <cstdint>
#include <map>
#include <string>

#include "common/result.h"

namespace deja::cli {

struct ParquetTables {
  std::map<std::string, uint64_t> rows;  // by table
  bool is_damaged = false;               // events of some ranks are missing
};

// `folder` does not exist yet.
Result<ParquetTables> WriteParquet(const std::string& trace, const std::string& folder);

}  // namespace deja::cli

#endif  // DEJA_CLI_EXPORT_PARQUET_H_

#include "recorder/config.h"

#include <cstdlib>
#include <cstring>

namespace deja::recorder {
namespace {

// False, and nothing is copied, if the variable is not set or too long.
template <size_t N>
bool CopyVariable(const char* name, char (&to)[N]) {
  const char* value = std::getenv(name);
  if (value == nullptr) return false;
  const size_t length = std::strlen(value);
  if (length >= N) return false;
  std::memcpy(to, value, length + 1);
  return true;
}

}  // namespace

bool ReadConfig(Config& config) {
  if (!CopyVariable("DEJA_OUT", config.trace_dir) || config.trace_dir[0] != '/') return false;
  CopyVariable("DEJA_TAIL_DIR", config.tail_dir);
  CopyVariable("DEJA_JOB_ID", config.job_id);
  if (const char* level = std::getenv("DEJA_LEVEL")) {
    if (std::strcmp(level, "order") == 0) config.level = Level::kOrder;
    if (std::strcmp(level, "digest") == 0) config.level = Level::kDigest;
  }
  if (const char* buffer = std::getenv("DEJA_BUFFER"))
    config.payload_bytes = static_cast<size_t>(std::strtoull(buffer, nullptr, 10));
  if (const char* single = std::getenv("DEJA_SINGLE")) config.single_pid = std::atoi(single);
  const char* pressure = std::getenv("DEJA_ON_PRESSURE");
  config.drop_payloads = pressure != nullptr && std::strcmp(pressure, "drop-payload") == 0;
  if (const char* copies = std::getenv("DEJA_REDUNDANCY"))
    config.copies = static_cast<uint32_t>(std::strtoul(copies, nullptr, 10));
  CopyVariable("DEJA_KEEP_ENV", config.keep_env);
  CopyVariable("DEJA_MASK", config.mask);
  return true;
}

format::RankLogOptions LogOptions(const Config& config, bool is_child) {
  format::RankLogOptions options;
  options.trace_dir = config.trace_dir;
  if (config.tail_dir[0] != '\0') options.tail_dir = config.tail_dir;
  options.job_id = config.job_id;
  if (config.payload_bytes != 0) options.payload_bytes = config.payload_bytes;
  options.copies = config.copies;
  if (config.drop_payloads) options.on_pressure = format::PressurePolicy::kDropPayload;
  if (is_child) options.first_payload_bytes = 64 << 10;
  return options;
}

}  // namespace deja::recorder

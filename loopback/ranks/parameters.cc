#include "loopback/ranks/parameters.h"

#include <cstdlib>
#include <cstring>

namespace deja::loopback {

// The defaults are NCCL's.
const Parameter kAlgorithm{"NCCL_ALGO", false, 0, ""};
const Parameter kProtocol{"NCCL_PROTO", false, 0, ""};
const Parameter kStrict{"DEJA_LOOPBACK_STRICT", true, 0, nullptr};
const Parameter kCommId{"NCCL_COMM_ID", false, 0, ""};
const Parameter kDebug{"NCCL_DEBUG", false, 0, ""};
const Parameter kSocketRetries{"NCCL_SOCKET_RETRY_CNT", true, 34, nullptr};
const Parameter kSocketRetryMilliseconds{"NCCL_SOCKET_RETRY_SLEEP_MSEC", true, 100, nullptr};

int64_t Parameter::Integer() const {
  const char* text = std::getenv(key);
  if (text == nullptr || *text == 0) return otherwise;
  char* end = nullptr;
  int64_t value = std::strtoll(text, &end, 0);
  return *end == 0 ? value : otherwise;
}

const char* Parameter::String() const {
  const char* text = std::getenv(key);
  return text == nullptr ? fallback : text;
}

uint64_t ProtocolHash() {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const Parameter* parameter : {&kProtocol, &kAlgorithm})
    for (const char* text = parameter->String(); *text != 0; ++text)
      hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;
  return hash;
}

std::span<const Parameter* const> AllParameters() {
  static const Parameter* const all[] = {&kAlgorithm, &kProtocol,      &kCommId,
                                         &kDebug,     &kSocketRetries, &kSocketRetryMilliseconds};
  return all;
}

const Parameter* FindParameter(const char* key) {
  for (const Parameter* parameter : AllParameters())
    if (std::strcmp(parameter->key, key) == 0) return parameter;
  return nullptr;
}

}  // namespace deja::loopback

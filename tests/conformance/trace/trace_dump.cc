// Dumps the recording in one rank's folder as JSON lines, for the comparison with the independent
// reader and with the golden traces. Fields are named by their numbers; bytes are hexadecimal;
// doubles are their 64 bits in hexadecimal; what is zero or empty is left out.
//
// usage: trace_dump RANK_FOLDER
#include <cstdio>
#include <string>

#include "format/reader/rank_reader.h"
#include "format/wire/frame_format.h"
#include "format/wire/message_codec.h"

namespace deja::format {
namespace {

std::string Hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<uint8_t>(c) >> 4];
    text += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return text;
}

std::string Hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

template <typename M>
std::string Json(const M& message);

struct JsonVisitor {
  std::string fields;

  template <typename T>
  void operator()(uint32_t number, const T& value) {
    if constexpr (internal::kIsSequence<T>) {
      if (value.empty()) return;
      std::string list;
      for (const auto& element : value) list += (list.empty() ? "" : ",") + Value(element);
      Add(number, "[" + list + "]");
    } else if constexpr (internal::kIsScalar<T>) {
      if (internal::ScalarBits(value) != 0) Add(number, Value(value));
    } else if constexpr (internal::kIsText<T>) {
      if (!internal::TextOf(value).empty()) Add(number, Value(value));
    } else {
      if (EncodedSize(value) != 0) Add(number, Value(value));
    }
  }
  template <typename T>
  static std::string Value(const T& value) {
    if constexpr (std::is_same_v<T, double>) {
      return "\"" + Hex(std::bit_cast<uint64_t>(value)) + "\"";
    } else if constexpr (internal::kIsScalar<T>) {
      return std::to_string(value);
    } else if constexpr (internal::kIsText<T>) {
      return "\"" + Hex(internal::TextOf(value)) + "\"";
    } else {
      return Json(value);
    }
  }
  void Add(uint32_t number, const std::string& value) {
    fields += (fields.empty() ? "\"" : ",\"") + std::to_string(number) + "\":" + value;
  }
};

template <typename M>
std::string Json(const M& message) {
  JsonVisitor visitor;
  Visit(visitor, message);
  return "{" + visitor.fields + "}";
}

int Dump(const char* folder) {
  const Result<std::unique_ptr<RankReader>> opened = RankReader::Open(folder, {.use_tail = false});
  if (!opened) {
    std::fprintf(stderr, "trace_dump: %s\n", opened.error().message.c_str());
    return 1;
  }
  const RankReader& reader = **opened;
  std::printf("{\"header\":%s}\n", Json(reader.header()).c_str());
  const auto cursor = reader.Events();
  while (const Event* event = cursor->Next()) {
    std::visit(
        [&](const auto& body) {
          using Body = std::decay_t<decltype(body)>;
          if constexpr (!std::is_same_v<Body, std::monostate>) {
            std::printf("{\"head\":%s,\"kind\":%u,\"body\":%s}\n",
                        Json(static_cast<const EventHead&>(*event)).c_str(),
                        static_cast<unsigned>(kKindOf<Body>), Json(body).c_str());
          }
        },
        event->body);
  }
  for (const PayloadInfo& info : reader.payloads()) {
    std::string bytes;
    const Status read = reader.StreamPayload(
        info.hash, [&](std::span<const std::byte> part) { bytes += AsText(part); });
    if (!read) {
      std::fprintf(stderr, "trace_dump: %s\n", read.error().message.c_str());
      return 1;
    }
    std::printf("{\"payload\":\"%s\",\"size\":%llu,\"xxh64\":\"%s\"}\n",
                Hex(internal::TextOf(info.hash)).c_str(),
                static_cast<unsigned long long>(info.total_size),
                Hex(Checksum(AsBytes(bytes))).c_str());
  }
  const char* const ends[] = {"clean", "torn", "corrupt"};
  std::printf("{\"end\":\"%s\",\"lost_bytes\":%llu}\n",
              ends[static_cast<size_t>(reader.end().state)],
              static_cast<unsigned long long>(reader.end().lost_bytes));
  return 0;
}

}  // namespace
}  // namespace deja::format

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: trace_dump RANK_FOLDER\n");
    return 2;
  }
  return deja::format::Dump(argv[1]);
}

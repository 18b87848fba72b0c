// Writes a line of the report (report_lines.h) as one JSON object.
//
// As async-signal-safe as JsonLine is: lines with a Real are not for signal handlers.
#ifndef DEJA_FORMAT_SCRATCH_LINE_WRITER_H_
#define DEJA_FORMAT_SCRATCH_LINE_WRITER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "format/scratch/json_line.h"
#include "format/scratch/report_lines.h"

namespace deja::format::report {

class LineWriter {
 public:
  explicit LineWriter(JsonLine& out) : out_(out) {}

  void operator()(const char* name, std::string_view text) { out_.Add(name, text); }
  void operator()(const char* name, uint64_t value) { out_.Add(name, value); }
  void operator()(const char* name, uint32_t value) { out_.Add(name, value); }
  void operator()(const char* name, int32_t value) { out_.Add(name, value); }
  void operator()(const char* name, bool value) { out_.Add(name, value); }
  void operator()(const char* name, const Real& real) { out_.AddDouble(name, real.value); }
  void operator()(const char* name, const Hex<Writing>& hex) { out_.AddHex(name, hex.bytes); }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& field) {
    if (field) (*this)(name, *field);
  }
  template <template <typename> class Part>
  void operator()(const char* name, const Part<Writing>& part) {
    out_.OpenObject(name);
    FieldsOf<Part>::Visit(part, *this);
    out_.Close();
  }
  template <template <typename> class Part>
  void operator()(const char* name, const std::span<const Part<Writing>>& list) {
    out_.OpenArray(name);
    for (const Part<Writing>& part : list) (*this)(nullptr, part);
    out_.Close();
  }
  template <template <typename> class Part>
  void Inline(const std::optional<Part<Writing>>& part) {
    if (part) FieldsOf<Part>::Visit(*part, *this);
  }

 private:
  JsonLine& out_;
};

// Adds the fields of `line` to `out`, which was made with its kKind.
template <template <typename> class Line>
void WriteFields(const Line<Writing>& line, JsonLine& out) {
  LineWriter writer(out);
  FieldsOf<Line>::Visit(line, writer);
}

}  // namespace deja::format::report

#endif  // DEJA_FORMAT_SCRATCH_LINE_WRITER_H_

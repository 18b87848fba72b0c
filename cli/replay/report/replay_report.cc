#include "cli/replay/report/replay_report.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <type_traits>
#include <utility>

#include "common/text/hex_text.h"
#include "format/scratch/scratch_names.h"

namespace deja::cli {
namespace {

using format::report::FieldsOf;
using format::report::Hex;
using format::report::Reading;
using format::report::Real;
using nlohmann::json;

constexpr size_t kMaxReportLines = 10000;
constexpr size_t kMaxReportBytes = 64 << 20;

// The beginning of the file, as a stream; the program may have put anything in its place.
std::istringstream BeginningOf(const std::string& path) {
  struct stat info {};
  std::string text;
  if (lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    text.resize(std::min(static_cast<size_t>(info.st_size), kMaxReportBytes));
    std::ifstream in(path, std::ios::binary);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  }
  return std::istringstream(std::move(text));
}

// A line has the bytes above ASCII as code points below 256 (JsonLine). A text with others was not
// written by it and stays as it is.
std::string BytesOfText(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      bytes += text[i];
      continue;
    }
    if ((first & 0xfc) != 0xc0 || i + 1 == text.size()) return text;
    bytes += static_cast<char>((first & 3) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f));
  }
  return bytes;
}

// Fills a line from a JSON object. The first thing that is wrong is the problem.
class LineReader {
 public:
  LineReader(const json& object, bool cut, std::string& problem)
      : object_(object), cut_(cut), problem_(problem) {}

  template <typename T>
  void operator()(const char* name, T& field) {
    const auto found = object_.find(name);
    if (found == object_.end()) {
      if (!cut_) Complain(fmt::format("no '{}'", name));
    } else {
      Read(name, *found, field);
    }
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& field) {
    const auto found = object_.find(name);
    if (found == object_.end()) return;
    field.emplace();
    Read(name, *found, *field);
  }
  template <template <typename> class Part>
  void Inline(std::optional<Part<Reading>>& part) {
    FirstField first;
    Part<Reading> read;
    FieldsOf<Part>::Visit(read, first);
    if (!object_.contains(first.name)) return;
    FieldsOf<Part>::Visit(read, *this);
    part = std::move(read);
  }

 private:
  struct FirstField {
    const char* name = nullptr;
    template <typename T>
    void operator()(const char* field, const T& /*value*/) {
      if (name == nullptr) name = field;
    }
  };

  void Complain(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
  }

  void Read(const char* name, const json& value, std::string& field) {
    if (!value.is_string()) return Complain(fmt::format("no text in '{}'", name));
    field = BytesOfText(value.get_ref<const std::string&>());
  }
  void Read(const char* name, const json& value, bool& field) {
    if (!value.is_boolean()) return Complain(fmt::format("neither true nor false in '{}'", name));
    field = value.get<bool>();
  }
  template <typename T>
  std::enable_if_t<std::is_integral_v<T>> Read(const char* name, const json& value, T& field) {
    using Limits = std::numeric_limits<T>;
    const bool fits = value.is_number_unsigned()
                          ? value.get<uint64_t>() <= static_cast<uint64_t>(Limits::max())
                          : value.is_number_integer() && std::is_signed_v<T> &&
                                value.get<int64_t>() >= static_cast<int64_t>(Limits::min());
    if (!fits) return Complain(fmt::format("no number that fits in '{}'", name));
    field = value.get<T>();
  }
  void Read(const char* name, const json& value, Real& field) {
    if (value.is_number()) {
      field.value = value.get<double>();
    } else if (value == "nan") {
      field.value = std::numeric_limits<double>::quiet_NaN();
    } else if (value == "inf" || value == "-inf") {
      field.value = (value == "inf" ? 1 : -1) * std::numeric_limits<double>::infinity();
    } else {
      Complain(fmt::format("no number in '{}'", name));
    }
  }
  void Read(const char* name, const json& value, Hex<Reading>& field) {
    const auto bytes =
        value.is_string() ? BytesOfHex(value.get_ref<const std::string&>()) : std::nullopt;
    if (!bytes) return Complain(fmt::format("no hexadecimal digits in '{}'", name));
    field.bytes = *bytes;
  }
  template <template <typename> class Part>
  void Read(const char* name, const json& value, Part<Reading>& field) {
    if (!value.is_object()) return Complain(fmt::format("no object in '{}'", name));
    LineReader reader(value, cut_, problem_);
    FieldsOf<Part>::Visit(field, reader);
  }
  template <template <typename> class Part>
  void Read(const char* name, const json& value, std::vector<Part<Reading>>& list) {
    if (!value.is_array()) return Complain(fmt::format("no list in '{}'", name));
    for (const json& element : value) Read(name, element, list.emplace_back());
  }

  const json& object_;
  const bool cut_;
  std::string& problem_;
};

// The other way round, for --json.
class JsonMaker {
 public:
  explicit JsonMaker(json& out) : out_(out) {}

  template <typename T>
  void operator()(const char* name, const T& field) {
    out_[name] = Made(field);
  }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& field) {
    if (field) out_[name] = Made(*field);
  }
  template <template <typename> class Part>
  void Inline(const std::optional<Part<Reading>>& part) {
    if (part) FieldsOf<Part>::Visit(*part, *this);
  }

  template <template <typename> class Part>
  static json Made(const Part<Reading>& part) {
    json object = json::object();
    JsonMaker maker(object);
    FieldsOf<Part>::Visit(part, maker);
    return object;
  }
  template <template <typename> class Part>
  static json Made(const std::vector<Part<Reading>>& list) {
    json array = json::array();
    for (const Part<Reading>& part : list) array.push_back(Made(part));
    return array;
  }
  static json Made(const std::string& text) { return text; }
  static json Made(bool value) { return value; }
  template <typename T>
  static std::enable_if_t<std::is_integral_v<T>, json> Made(T value) {
    return value;
  }
  static json Made(const Real& real) {
    if (std::isfinite(real.value)) return real.value;
    return std::isnan(real.value) ? "nan" : real.value > 0 ? "inf" : "-inf";
  }
  static json Made(const Hex<Reading>& hex) { return HexText(hex.bytes); }

 private:
  json& out_;
};

template <template <typename> class Line>
ReportLine ReadLine(const json& object, bool cut, std::string& problem) {
  Line<Reading> line;
  LineReader reader(object, cut, problem);
  FieldsOf<Line>::Visit(line, reader);
  return {std::move(line), "", cut};
}

// The line after its kind, or a problem.
ReportLine ReadObject(const json& object, std::string& problem) {
  const std::string kind = object.value(format::report::kKindField, "");
  const bool cut = object.value(format::report::kCutField, false);
#define DEJA_REPORT_PART(Name, meaning)
#define DEJA_REPORT_LINE(Name, text, meaning) \
  if (kind == (text)) return ReadLine<format::report::Name>(object, cut, problem);
#define DEJA_REPORT_FIELD(type, name, meaning)
#define DEJA_REPORT_INLINE(type, name, meaning)
#define DEJA_REPORT_END
#include "format/scratch/report_lines.def"
  problem = fmt::format("'{}' is no kind of line", kind);
  return {};
}

}  // namespace

ReportLine ParseReportLine(std::string_view text, std::string& problem) {
  const json object = json::parse(text, nullptr, false);
  const auto is = [&object](const char* name, auto what) {
    const auto found = object.find(name);
    return found == object.end() || ((*found).*what)();
  };
  if (!object.is_object() || !object.contains(format::report::kKindField)) {
    problem = "no JSON object with a kind";
    return {};
  }
  if (!is(format::report::kKindField, &json::is_string) ||
      !is(format::report::kChildField, &json::is_string) ||
      !is(format::report::kCutField, &json::is_boolean)) {
    problem = "a kind, a child or a cut of another type";
    return {};
  }
  ReportLine line = ReadObject(object, problem);
  line.child = BytesOfText(object.value(format::report::kChildField, ""));
  return line;
}

ReplayReport ReadReport(const std::string& scratch) {
  ReplayReport report;
  std::istringstream in = BeginningOf(scratch + format::kReportFile);
  std::string text;
  for (size_t number = 1; number <= kMaxReportLines && std::getline(in, text); ++number) {
    std::string problem;
    ReportLine line = ParseReportLine(text, problem);
    if (problem.empty())
      report.lines.push_back(std::move(line));
    else
      report.damage.push_back(fmt::format("line {}: {}", number, problem));
  }
  return report;
}

nlohmann::json ToJson(const ReportLine& line) {
  json object = json::object();
  std::visit(
      [&object](const auto& of_kind) {
        using Line = std::decay_t<decltype(of_kind)>;
        if constexpr (!std::is_same_v<Line, std::monostate>) {
          object = JsonMaker::Made(of_kind);
          object[format::report::kKindField] = Line::kKind;
        }
      },
      line.line);
  if (!line.child.empty()) object[format::report::kChildField] = line.child;
  if (line.cut) object[format::report::kCutField] = true;
  return object;
}

nlohmann::json ToJson(const std::vector<ParkedPart>& parked) {
  return JsonMaker::Made(parked);
}

bool HasStopped(const std::string& scratch) {
  const std::vector<ReportLine> lines = ReadReport(scratch).lines;
  return FindLine<FailedLine>(lines) != nullptr || FindLine<StoppedLine>(lines) != nullptr ||
         (FindLine<DivergenceLine>(lines) != nullptr && FindLine<ExitLine>(lines) == nullptr);
}

}  // namespace deja::cli

// The lines of a replay's report as types, made of report_lines.def: report::Exit<report::Writing>
// is one that the replay library writes, report::Exit<report::Reading> one that the command line
// has read.
//
// Values. A side that writes borrows its texts and lists, so that a signal handler can fill a line;
// a side that reads owns them.
#ifndef DEJA_FORMAT_SCRATCH_REPORT_LINES_H_
#define DEJA_FORMAT_SCRATCH_REPORT_LINES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace deja::format::report {

struct Writing {
  using Text = std::string_view;
  template <typename T>
  using List = std::span<const T>;
};

struct Reading {
  using Text = std::string;
  template <typename T>
  using List = std::vector<T>;
};

// Bytes that the line has as hexadecimal digits.
template <typename Side>
struct Hex {
  typename Side::Text bytes;
};

// A double; NaN and the infinities are texts in the line.
struct Real {
  double value = 0;
};

// Fields that every line may have.
inline constexpr const char* kKindField = "kind";
inline constexpr const char* kChildField = "child";
inline constexpr const char* kCutField = "cut";

#define DEJA_REPORT_TYPES                       \
  using Text = typename Side::Text;             \
  template <typename T>                         \
  using List = typename Side::template List<T>; \
  template <typename T>                         \
  using Optional = std::optional<T>;
#define DEJA_REPORT_PART(Name, meaning) \
  template <typename Side>              \
  struct Name {                         \
    DEJA_REPORT_TYPES
#define DEJA_REPORT_LINE(Name, kind, meaning)         \
  template <typename Side>                            \
  struct Name {                                       \
    static constexpr std::string_view kKind = (kind); \
    DEJA_REPORT_TYPES
#define DEJA_REPORT_FIELD(type, name, meaning) type name{};
#define DEJA_REPORT_INLINE(type, name, meaning) std::optional<type> name{};
#define DEJA_REPORT_END \
  }                     \
  ;
#include "format/scratch/report_lines.def"
#undef DEJA_REPORT_TYPES

// FieldsOf<Exit>::Visit(line, visit) calls visit(name, field) for each field, and
// visit.Inline(part) for a part whose fields stand among them, in the table's order.
template <template <typename> class Struct>
struct FieldsOf;

#define DEJA_REPORT_PART(Name, meaning)        \
  template <>                                  \
  struct FieldsOf<Name> {                      \
    template <typename Line, typename Visitor> \
    static void Visit(Line& line, Visitor& visit) {
#define DEJA_REPORT_LINE(Name, kind, meaning) DEJA_REPORT_PART(Name, meaning)
#define DEJA_REPORT_FIELD(type, name, meaning) visit(#name, line.name);
#define DEJA_REPORT_INLINE(type, name, meaning) visit.Inline(line.name);
#define DEJA_REPORT_END \
  }                     \
  }                     \
  ;
#include "format/scratch/report_lines.def"

// A line of any kind; the first alternative: none.
template <typename Side>
using AnyLine = std::variant<std::monostate
#define DEJA_REPORT_PART(Name, meaning)
#define DEJA_REPORT_LINE(Name, kind, meaning) , Name<Side>
#define DEJA_REPORT_FIELD(type, name, meaning)
#define DEJA_REPORT_INLINE(type, name, meaning)
#define DEJA_REPORT_END
#include "format/scratch/report_lines.def"
                             >;

}  // namespace deja::format::report

#endif  // DEJA_FORMAT_SCRATCH_REPORT_LINES_H_

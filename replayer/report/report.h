// Report: what the replay reports to `deja replay`, as JSON lines in the scratch folder.
//
// Each line is written with one append, so that several threads may report. The file is opened each
// time: programs close descriptors they did not open. Write is async-signal-safe for lines without
// a Real. Nothing is reported when no scratch folder is known.
#ifndef DEJA_REPLAYER_REPORT_REPORT_H_
#define DEJA_REPLAYER_REPORT_REPORT_H_

#include <string_view>

#include "format/scratch/json_line.h"
#include "format/scratch/line_writer.h"
#include "format/scratch/report_lines.h"

namespace deja::replayer {

// ExitLine, CrashLine …: the lines of format/scratch/report_lines.def as this side writes them, and
// FramePart … their parts.
#define DEJA_REPORT_PART(Name, meaning) \
  using Name##Part = format::report::Name<format::report::Writing>;
#define DEJA_REPORT_LINE(Name, kind, meaning) \
  using Name##Line = format::report::Name<format::report::Writing>;
#define DEJA_REPORT_FIELD(type, name, meaning)
#define DEJA_REPORT_INLINE(type, name, meaning)
#define DEJA_REPORT_END
#include "format/scratch/report_lines.def"

class Report {
 public:
  // `scratch` is copied.
  void Open(std::string_view scratch);
  // Nothing is reported any more.
  void Close() { path_[0] = '\0'; }
  // Every line says that it is about this child of the rank. Copied.
  void SetChild(std::string_view name);
  // Borrows what the line names until it returns.
  template <template <typename> class Line>
  void Write(const Line<format::report::Writing>& line) const {
    if (path_[0] == '\0') return;
    format::JsonLine text(Line<format::report::Writing>::kKind);
    format::report::WriteFields(line, text);
    Append(text);
  }

 private:
  void Append(format::JsonLine& line) const;

  char path_[4096] = {};
  char child_[512] = {};
};

// One line "deja: MESSAGE" on stderr. Async-signal-safe.
void Say(std::string_view message);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_REPORT_REPORT_H_

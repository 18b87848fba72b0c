// Report: what the replay tells `deja replay`, as JSON lines in the scratch folder.
//
// Each line is written with one append, so that several threads may report, and the file is opened
// anew each time: programs close descriptors they did not open. Write and WriteInSignal are
// async-signal-safe. Nothing is reported when no scratch folder is known.
#ifndef DEJA_REPLAYER_REPORT_REPORT_H_
#define DEJA_REPLAYER_REPORT_REPORT_H_

#include <string_view>

#include "replayer/report/json_line.h"

namespace deja::replayer {

class Report {
 public:
  // `scratch` is copied.
  void Open(std::string_view scratch);
  // Nothing is reported any more.
  void Close() { path_[0] = '\0'; }
  // Every line says that it is about this child of the rank. Copied.
  void SetChild(std::string_view name);
  void Write(JsonLine& line) const;

 private:
  char path_[4096] = {};
  char child_[512] = {};
};

// One line "deja: MESSAGE" on stderr. Async-signal-safe.
void Say(std::string_view message);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_REPORT_REPORT_H_

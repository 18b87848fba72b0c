// SeenGatherer: makes a Seen of the events of one rank, one event after another.
//
// Owned by who summarizes a rank; one thread.
#ifndef DEJA_CHECK_EVIDENCE_GATHER_SEEN_H_
#define DEJA_CHECK_EVIDENCE_GATHER_SEEN_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/evidence/seen.h"
#include "check/evidence/summary.h"
#include "format/wire/messages.h"

namespace deja::check {

// What notes say of the call that a thread makes next.
struct NextCall {
  std::string names;              // of its operands: "key=loss"
  std::vector<uint64_t> members;  // of the communicator that it makes
};

class SeenGatherer {
 public:
  // `number_of`: the summary's number of a site.
  SeenGatherer(Seen& seen, std::function<uint32_t(const Site&)> number_of)
      : seen_(seen), number_of_(std::move(number_of)) {}

  // True: the note was one of these. `next`: gets what it says of the thread's next call.
  bool OnNote(std::string_view text, uint64_t time_ns, NextCall& next);
  void OnGenerator(std::string_view name, uint64_t digest, uint64_t time_ns);
  void OnFile(const format::InputFile& file, uint32_t thread, uint64_t time_ns);
  void OnRead(const format::FileRead& read, uint32_t thread, uint64_t time_ns);
  void OnInput(const format::Input& input, std::string_view api, uint32_t thread, uint64_t time_ns);
  void OnClock(const format::ClockRun& run, uint32_t thread, uint64_t time_ns);
  void OnStore(std::string_view key, std::string_view value, uint32_t thread, uint64_t time_ns);
  void OnConnection(const format::ConnectionOpened& opened, uint64_t time_ns);
  void Finish();

 private:
  class Fields;

  void Add(InputSeen input);
  static Site SiteIn(std::string_view text);
  uint32_t SiteOf(std::string_view text);
  void OnLook(const Fields& fields, uint64_t time_ns);
  void OnCaught(const Fields& fields, uint64_t time_ns);

  Seen& seen_;
  std::function<uint32_t(const Site&)> number_of_;
  std::map<uint32_t, std::string> paths_;  // by number of the file
  std::deque<InputSeen> last_inputs_;
};

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_GATHER_SEEN_H_

// Export as JSON of chrome://tracing, which Perfetto's viewer and many others read.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cli/export/formats.h"
#include "common/text/plain_text.h"

namespace deja::cli {
namespace {

// Threads of a rank's "process": its steps, then lanes of communicators.
constexpr uint64_t kStepsThread = 1;

class ChromeWriter {
 public:
  ChromeWriter(const ExportSource& source, ExportFile& file) : source_(source), file_(file) {}

  void Write() {
    file_.Write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    for (size_t r = 0; r < source_.job.ranks.size(); ++r) AddRank(r);
    for (size_t i = 0; i < source_.operations.size(); ++i) AddOperation(i);
    file_.Write("\n]}\n");
  }

 private:
  void Add(const nlohmann::json& event) {
    file_.Write(is_first_ ? "\n" : ",\n");
    is_first_ = false;
    file_.Write(PlainJson(event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  }
  void AddName(const char* what, size_t rank, uint64_t thread, const std::string& name) {
    Add({{"ph", "M"},
         {"name", what},
         {"pid", source_.job.ranks[rank].rank},
         {"tid", thread},
         {"args", {{"name", name}}}});
  }
  // Microseconds since the first event, with the fraction of them.
  double Time(uint64_t time_ns) const {
    const uint64_t origin = source_.operations.empty() ? 0 : source_.operations.front().begin_ns;
    return static_cast<double>(static_cast<int64_t>(time_ns - origin)) / 1000;
  }

  void AddRank(size_t index) {
    AddName("process_name", index, 0, source_.RankName(index));
    Add({{"ph", "M"},
         {"name", "process_sort_index"},
         {"pid", source_.job.ranks[index].rank},
         {"args", {{"sort_index", index}}}});
    const auto& steps = source_.ranks[index].steps;
    if (steps.empty()) return;
    AddName("thread_name", index, kStepsThread, "steps");
    for (size_t i = 0; i < steps.size(); ++i) {
      const uint64_t end =
          i + 1 < steps.size() ? steps[i + 1].second : source_.job.ranks[index].last_time_ns;
      Add({{"ph", "X"},
           {"name", fmt::format("step {}", steps[i].first)},
           {"pid", source_.job.ranks[index].rank},
           {"tid", kStepsThread},
           {"ts", Time(steps[i].second)},
           {"dur", Time(end) - Time(steps[i].second)}});
    }
  }

  uint64_t ThreadOf(const check::JoinedOperation& one, const check::Part& part) {
    const size_t lane = lanes_.Of(part.rank, one.communicator, part);
    const auto [it, added] = threads_.try_emplace({part.rank, one.communicator, lane},
                                                  kStepsThread + 1 + threads_.size());
    if (added) AddName("thread_name", part.rank, it->second, source_.CommName(one.communicator));
    return it->second;
  }

  void AddOperation(size_t index) {
    const check::JoinedOperation& one = source_.operations[index];
    for (size_t i = 0; i < one.parts.size(); ++i) {
      const check::Part& part = one.parts[i];
      const uint32_t rank = source_.job.ranks[part.rank].rank;
      const uint64_t thread = ThreadOf(one, part);
      nlohmann::json args = {
          {"communicator", source_.CommName(one.communicator)},
          {"number", one.number},
          {"waited_us", Waited(one, part)},
          {"site", PlainText(check::Describe(source_.job.sites[part.call->site]))},
          {"state", part.is_open ? "never done" : "done"}};
      if (part.call->step != check::kNoStep) args["step"] = part.call->step;
      const std::string name = source_.job.SignatureText(*part.call);
      Add({{"ph", "X"},
           {"name", name},
           {"cat", "collective"},
           {"pid", rank},
           {"tid", thread},
           {"ts", Time(part.begin_ns)},
           {"dur", Time(part.end_ns) - Time(part.begin_ns)},
           {"args", args}});
      if (one.parts.size() < 2) continue;
      nlohmann::json flow = {{"name", "operation"},
                             {"cat", "flow"},
                             {"id", index},
                             {"pid", rank},
                             {"tid", thread},
                             {"ts", Time(part.begin_ns)},
                             {"ph", i == 0                      ? "s"
                                    : i + 1 == one.parts.size() ? "f"
                                                                : "t"}};
      if (i != 0) flow["bp"] = "e";
      Add(flow);
    }
  }
  static double Waited(const check::JoinedOperation& one, const check::Part& part) {
    const uint64_t until = std::min(one.met_ns, part.end_ns);
    return until > part.begin_ns ? static_cast<double>(until - part.begin_ns) / 1000 : 0;
  }

  const ExportSource& source_;
  ExportFile& file_;
  Lanes lanes_;
  std::map<std::tuple<size_t, size_t, size_t>, uint64_t> threads_;
  bool is_first_ = true;
};

}  // namespace

Status ExportChrome(const ExportSource& source, const std::string& path) {
  DEJA_ASSIGN_OR_RETURN(auto file, ExportFile::Create(path));
  ChromeWriter(source, file).Write();
  return file.Finish();
}

}  // namespace deja::cli

#include "check/evidence/gather_seen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>

#include "format/tail/clock_run.h"

namespace deja::check {
namespace {

constexpr std::string_view kPrefix = "check/";  // python/deja/evidence/seen.py
// A limit for what the program read: programs can read for days.
constexpr size_t kFirstInputs = 8192;
constexpr size_t kLastInputs = 8192;
constexpr size_t kMostOfAKind = 1 << 20;

std::string Unquoted(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool quoted = text[i] == '%' && i + 2 < text.size();
    if (!quoted) {
      plain += text[i];
      continue;
    }
    const std::string digits(text.substr(i + 1, 2));
    plain += static_cast<char>(std::strtoul(digits.c_str(), nullptr, 16));
    i += 2;
  }
  return plain;
}

uint64_t Number(std::string_view text) {
  return std::strtoull(std::string(text).c_str(), nullptr, 10);
}

uint64_t Digest(std::string_view text) {
  if (text == "none") return kNoGradient;
  if (text.empty() || text == "unknown") return kUnknownDigest;
  return std::strtoull(std::string(text).c_str(), nullptr, 16);
}

std::vector<uint64_t> Rows(std::string_view text) {
  std::vector<uint64_t> rows;
  if (text == "unknown") return rows;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    rows.push_back(Number(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return rows;
}

// Those that a program looks at to know what time it is.
bool IsWallClock(format::ClockSource source) {
  switch (source) {
    case format::ClockSource::kRealtime:
    case format::ClockSource::kRealtimeCoarse:
    case format::ClockSource::kGettimeofday:
    case format::ClockSource::kTime:
    case format::ClockSource::kTimespecGet:
      return true;
    default:
      return false;
  }
}

template <typename T>
void Keep(std::vector<T>& all, T one) {
  if (all.size() < kMostOfAKind) all.push_back(std::move(one));
}

}  // namespace

// "name=value name=value"
class SeenGatherer::Fields {
 public:
  explicit Fields(std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find(' '), text.size());
      const std::string_view field = text.substr(0, end);
      const size_t equals = field.find('=');
      if (equals != std::string_view::npos)
        fields_.emplace_back(field.substr(0, equals), field.substr(equals + 1));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  std::string_view operator[](std::string_view name) const {
    for (const auto& [key, value] : fields_)
      if (key == name) return value;
    return {};
  }
  [[nodiscard]] const std::vector<std::pair<std::string_view, std::string_view>>& all() const {
    return fields_;
  }

 private:
  std::vector<std::pair<std::string_view, std::string_view>> fields_;
};

// "train.py:57:main|train.py:70:<module>"
Site SeenGatherer::SiteIn(std::string_view text) {
  Site site;
  while (!text.empty()) {
    const size_t end = std::min(text.find('|'), text.size());
    const std::string_view frame = text.substr(0, end);
    const size_t name = frame.rfind(':');
    const size_t line = name == std::string_view::npos ? name : frame.rfind(':', name - 1);
    if (line != std::string_view::npos && line > 0)
      site.push_back({Unquoted(frame.substr(0, line)),
                      static_cast<int>(Number(frame.substr(line + 1, name - line - 1))),
                      Unquoted(frame.substr(name + 1))});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return site;
}

uint32_t SeenGatherer::SiteOf(std::string_view text) {
  const Site site = SiteIn(text);
  return site.empty() ? kNoSite : number_of_(site);
}

void SeenGatherer::OnLook(const Fields& fields, uint64_t time_ns) {
  const bool found = fields["found"] == "1";
  const Site site = SiteIn(fields["at"]);
  InputSeen input;
  input.kind = InputKind::kLook;
  input.name = Unquoted(fields["name"]);
  input.value = found ? 1 : 0;
  input.shown = found ? "there" : "not there";
  if (!site.empty()) input.shown += " at " + check::Describe(site.front());
  input.time_ns = time_ns;
  Add(std::move(input));
}

void SeenGatherer::OnCaught(const Fields& fields, uint64_t time_ns) {
  const Site raised = SiteIn(fields["raised"]);
  const Site caught = SiteIn(fields["caught"]);
  InputSeen input;
  input.kind = InputKind::kCaught;
  input.name = Unquoted(fields["error"]);
  const std::string text = Unquoted(fields["text"]);
  if (!text.empty()) input.name += ": " + text;
  if (!raised.empty()) input.shown = " at " + check::Describe({raised.front()});
  if (!caught.empty()) input.shown += ", caught at " + check::Describe({caught.front()});
  input.time_ns = time_ns;
  Add(std::move(input));
}

bool SeenGatherer::OnNote(std::string_view text, uint64_t time_ns, NextCall& next) {
  if (text.substr(0, kPrefix.size()) != kPrefix) return false;
  text.remove_prefix(kPrefix.size());
  const size_t space = std::min(text.find(' '), text.size());
  const std::string_view kind = text.substr(0, space);
  const Fields fields(text.substr(std::min(space + 1, text.size())));
  const auto at = [&](std::string_view name) { return SiteOf(fields[name]); };
  const auto number = [&](std::string_view name) { return Number(fields[name]); };
  if (kind == "names") {
    next.names.clear();
    for (const auto& [name, value] : fields.all())
      next.names += fmt::format("{}{}={}", next.names.empty() ? "" : " ", name, value);
  } else if (kind == "group") {
    next.members = Rows(fields["members"]);
  } else if (kind == "state") {
    Keep(seen_.weights,
         {static_cast<uint32_t>(number("optimizer")), number("step"), Unquoted(fields["name"]),
          Digest(fields["weight"]), Digest(fields["gradient"]), Rows(fields["replicas"]),
          at("made"), at("at"), time_ns});
  } else if (kind == "optimizer") {
    Keep(seen_.optimizers,
         {static_cast<uint32_t>(number("optimizer")), number("step"), Unquoted(fields["kind"]),
          Unquoted(fields["lr"]), Digest(fields["weights"]), Digest(fields["gradients"]),
          Digest(fields["state"]), at("at"), time_ns});
  } else if (kind == "batch") {
    Keep(seen_.batches, {static_cast<uint32_t>(number("loader")), number("passed"), number("batch"),
                         Rows(fields["rows"]), number("size"), Unquoted(fields["sampler"]),
                         fields["shuffles"] == "1", Unquoted(fields["epoch"]),
                         fields["trains"] == "1", Digest(fields["digest"]), at("at"), time_ns});
  } else if (kind == "looked") {
    OnLook(fields, time_ns);
  } else if (kind == "caught") {
    OnCaught(fields, time_ns);
  } else if (kind == "pass") {
    Keep(seen_.passes, {static_cast<uint32_t>(number("loader")), number("passed"),
                        number("batches"), at("at"), time_ns});
  } else if (kind == "changed") {
    Keep(seen_.changes,
         {Unquoted(fields["call"]), "", "", number("times"), at("issued"), at("ended"), time_ns});
  } else if (kind == "saved") {
    Keep(seen_.changes,
         {Unquoted(fields["name"]), Unquoted(fields["file"]), Unquoted(fields["thread"]),
          number("times"), at("given"), at("at"), time_ns});
  } else if (kind == "garbage") {
    if (fields["phase"] == "start") {
      Keep(seen_.garbage, {time_ns, time_ns});
    } else if (!seen_.garbage.empty()) {
      seen_.garbage.back().end_ns = time_ns;
    }
  }
  return true;
}

void SeenGatherer::OnGenerator(std::string_view name, uint64_t digest, uint64_t time_ns) {
  Keep(seen_.generators, {std::string(name), digest, time_ns});
}

void SeenGatherer::Add(InputSeen input) {
  if (seen_.inputs.size() < kFirstInputs) {
    seen_.inputs.push_back(std::move(input));
    return;
  }
  last_inputs_.push_back(std::move(input));
  if (last_inputs_.size() > kLastInputs) last_inputs_.pop_front();
}

void SeenGatherer::OnFile(const format::InputFile& file, uint32_t thread, uint64_t time_ns) {
  paths_[file.file] = std::string(file.path);
  if (file.program || file.written) return;
  InputSeen input;
  input.name = std::string(file.path);
  input.thread = thread;
  input.time_ns = time_ns;
  const bool is_folder = !file.entries_hash.IsZero() || !file.entries.empty();
  input.kind = is_folder ? InputKind::kFolder : InputKind::kFile;
  if (file.mode == 0) {
    input.shown = "not there";
  } else if (is_folder) {
    input.value = file.entries_hash.IsZero() ? std::hash<std::string_view>{}(file.entries)
                                             : file.entries_hash.Prefix();
    input.shown = "entries " + fmt::format("{:016x}", input.value);
  } else {
    input.value = file.size + 1;
    input.shown = fmt::format("{} bytes", file.size);
  }
  Add(std::move(input));
}

void SeenGatherer::OnRead(const format::FileRead& read, uint32_t thread, uint64_t time_ns) {
  const auto path = paths_.find(read.file);
  if (path == paths_.end() || read.hashes.empty()) return;
  InputSeen input;
  input.name = path->second;
  input.value = std::hash<std::string_view>{}(read.hashes);
  input.shown = fmt::format("bytes {:016x}", input.value);
  input.thread = thread;
  input.time_ns = time_ns;
  Add(std::move(input));
}

void SeenGatherer::OnInput(const format::Input& input, std::string_view api, uint32_t thread,
                           uint64_t time_ns) {
  static const std::set<std::string_view> entropy = {"getrandom", "getentropy", "read_random"};
  if (entropy.count(api) == 0) return;
  InputSeen seen;
  seen.kind = InputKind::kEntropy;
  seen.name = std::string(api);
  seen.value =
      input.hash.IsZero() ? std::hash<std::string_view>{}(input.data) : input.hash.Prefix();
  seen.shown = fmt::format("{:016x}", seen.value);
  seen.thread = thread;
  seen.time_ns = time_ns;
  Add(std::move(seen));
}

void SeenGatherer::OnClock(const format::ClockRun& run, uint32_t thread, uint64_t time_ns) {
  // The last reading of each clock is kept for a run.
  std::map<format::ClockSource, int64_t> last;
  format::ForEachReading(run, [&](format::ClockSource source, int64_t value) {
    if (IsWallClock(source)) last[source] = value;
  });
  for (const auto& [source, value] : last) {
    InputSeen seen;
    seen.kind = InputKind::kClock;
    seen.name = "the clock";
    seen.value = static_cast<uint64_t>(value);
    seen.shown = fmt::format("{:.6f} s", static_cast<double>(value) / 1e9);
    seen.thread = thread;
    seen.time_ns = time_ns;
    Add(std::move(seen));
  }
}

void SeenGatherer::OnStore(std::string_view key, std::string_view value, uint32_t thread,
                           uint64_t time_ns) {
  InputSeen seen;
  seen.kind = InputKind::kStore;
  seen.name = std::string(key.substr(std::min(key.find(':') + 1, key.size())));
  seen.value = std::hash<std::string_view>{}(value);
  const bool is_text = value.size() <= 32 && std::all_of(value.begin(), value.end(), [](char c) {
                         return c >= ' ' && c <= '~';
                       });
  seen.shown = is_text ? fmt::format("\"{}\"", value) : fmt::format("{} bytes", value.size());
  seen.thread = thread;
  seen.time_ns = time_ns;
  Add(std::move(seen));
}

void SeenGatherer::OnConnection(const format::ConnectionOpened& opened, uint64_t time_ns) {
  const auto kind = static_cast<format::ConnectionKind>(opened.kind);
  const bool is_bind = kind == format::ConnectionKind::kBound;
  if (!is_bind && kind != format::ConnectionKind::kConnected) return;
  Keep(seen_.sockets,
       {std::string(opened.local), std::string(opened.remote.empty() ? opened.name : opened.remote),
        opened.error, is_bind, time_ns});
}

void SeenGatherer::Finish() {
  seen_.inputs.insert(seen_.inputs.end(), std::make_move_iterator(last_inputs_.begin()),
                      std::make_move_iterator(last_inputs_.end()));
  last_inputs_.clear();
}

}  // namespace deja::check

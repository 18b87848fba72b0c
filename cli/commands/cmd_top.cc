// deja top: what a running job does now.
#include <fmt/format.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include "cli/command.h"
#include "cli/help/option_list.h"
#include "cli/interruption.h"
#include "cli/output.h"
#include "cli/summaries/trace_damage.h"
#include "cli/top/live_job.h"
#include "cli/top/screen.h"
#include "cli/top/top_text.h"
#include "cli/top/top_view.h"
#include "common/runtime/clock_ns.h"

namespace deja::cli {
namespace {

struct TopOptions {
  std::string trace;
  double interval = 2;  // seconds
  uint64_t count = 0;   // 0: until the job ends
};
TopOptions g_top_options;

constexpr size_t kMostLines = 8;  // of each kind, in a pipe

void AddTopOptions(CLI::App& app) {
  app.add_option("TRACE", g_top_options.trace, "A trace directory that is being recorded")
      ->required();
  app.add_option("--interval", g_top_options.interval,
                 "Read the trace every SECONDS (default 2, least 0.1)")
      ->check(CLI::Range(0.1, 3600.0))
      ->type_name("SECONDS");
  app.add_option("--count", g_top_options.count,
                 "End after N readings (default: when no rank runs)")
      ->type_name("N");
}

TopView Read(LiveJob& job) {
  job.Poll();
  TopView view = MakeTopView(g_top_options.trace, job.ranks(), ClockNs(CLOCK_REALTIME));
  view.notes = job.notes();
  return view;
}

// Keys, until it is time for the next reading; false: the user has had enough.
bool ShowUntil(Screen& screen, const TopView& view, std::chrono::steady_clock::time_point end,
               size_t& first_row) {
  for (;;) {
    const Screen::Size size = screen.size();
    const TopPage page = MakeTopPage(view, size.columns, size.lines, first_row);
    first_row = page.first_row;
    screen.Show(page.lines, page.heading);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return true;
    const size_t jump = std::max<size_t>(size.lines / 2, 1);
    switch (screen.WaitForKey(static_cast<int>(left.count()))) {
      case Key::kNone:
        if (Interruption::Signal() != 0) return false;
        continue;
      case Key::kQuit:
        return false;
      case Key::kUp:
        first_row -= std::min<size_t>(first_row, 1);
        break;
      case Key::kDown:
        ++first_row;
        break;
      case Key::kPageUp:
        first_row -= std::min(first_row, jump);
        break;
      case Key::kPageDown:
        first_row += jump;
        break;
      case Key::kHome:
        first_row = 0;
        break;
      case Key::kEnd:
        first_row = view.rows.size();
        break;
      case Key::kResized:
        break;
    }
  }
}

void PrintView(const TopView& view, bool as_json) {
  if (as_json) {
    PrintJson(ToJson(view), -1);
  } else {
    for (const std::string& line : TopLines(view, kMostLines)) PrintLine(line);
  }
  std::fflush(stdout);
}

// The exit code: what was shown leaves damaged parts out.
int SayDamage(const LiveJob& job) {
  const std::map<uint32_t, std::string> damage = job.Damage();
  for (const auto& [rank, what] : damage) SayDamaged(fmt::format("rank {}", rank), what);
  return damage.empty() ? kExitOk : kExitDataLoss;
}

int RunTop(const Context& context) {
  auto job = LiveJob::Open(g_top_options.trace);
  if (!job) return FailWith(job.error());
  TopView view = Read(*job);
  if (view.rows.empty()) {
    for (const std::string& note : view.notes) Diagnose(note);
    Diagnose(
        fmt::format("reading: {}: no rank in it yet; start the job with deja record, or wait "
                    "until it has made its first communicator",
                    g_top_options.trace));
    return kExitFailure;
  }
  const Interruption interruption;
  const auto interval = std::chrono::milliseconds(static_cast<int>(g_top_options.interval * 1000));
  size_t first_row = 0;
  {
    const auto screen = context.json ? nullptr : Screen::Open();
    for (uint64_t times = 1;; ++times) {
      const bool is_last = !job->is_running() || times == g_top_options.count;
      if (screen == nullptr) PrintView(view, context.json);
      if (is_last) break;
      const auto end = std::chrono::steady_clock::now() + interval;
      if (screen == nullptr)
        poll(nullptr, 0, static_cast<int>(interval.count()));
      else if (!ShowUntil(*screen, view, end, first_row))
        break;
      if (Interruption::Signal() != 0) break;
      view = Read(*job);
    }
    if (screen == nullptr) return SayDamage(*job);
  }
  // What was seen last stays, when the page is gone.
  PrintView(view, false);
  return SayDamage(*job);
}

}  // namespace

extern const Command kTopCommand;
const Command kTopCommand = {
    "top",
    "Watch a running job: steps, rates, who waits for whom, which rank is late",
    "  deja top run.deja                          in a terminal: a page; q ends it\n"
    "  deja top run.deja | tee top.log            in a pipe: lines\n"
    "  deja top run.deja --json --count 1         one JSON value\n",
    false,
    AddTopOptions,
    RunTop,
};

}  // namespace deja::cli

#include "cli/top/top_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/output.h"
#include "common/text/plain_text.h"

namespace deja::cli {
namespace {

constexpr size_t kMostWaits = 4;  // on a page

std::string StepText(const TopView& view) {
  if (!view.first_step) return "no step yet";
  const std::string steps = view.first_step == view.last_step
                                ? fmt::format("step {}", *view.first_step)
                                : fmt::format("steps {}-{}", *view.first_step, *view.last_step);
  return fmt::format("{}, {:.2f}/s", steps, view.steps_per_second);
}

std::string JobText(const TopView& view) {
  std::string ranks = fmt::format("{} of {} ranks run", view.running, view.rows.size());
  if (view.world_size > view.rows.size())
    ranks += fmt::format(" ({} to come)", view.world_size - view.rows.size());
  return fmt::format("{}, {}, {:.0f} operations/s, {}/s ({} in all), {}", ranks, StepText(view),
                     view.operations_per_second,
                     HumanBytes(static_cast<uint64_t>(view.bytes_per_second)),
                     HumanBytes(view.bytes), HumanDuration(view.elapsed_ns));
}

std::string WaitText(const TopWait& wait) {
  return fmt::format("{} ({})", wait.Describe(), HumanDuration(wait.since_ns));
}

std::string StragglerText(const TopRow& row) {
  return fmt::format("rank {} is late: last in {:.0f} % of the last collectives, waited for {}",
                     row.rank, row.late_share * 100, HumanDuration(row.waited_for_ns));
}

// Code points, so that a line's width is about its length; a screen's line ends there.
std::string Cut(std::string text, size_t columns) {
  size_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (begins && width++ == columns) {
      text.resize(i);
      break;
    }
  }
  return text;
}

std::string RowText(const TopRow& row) {
  const std::string step = row.step ? fmt::format("{}", *row.step) : "-";
  return fmt::format("{:>6} {:<10} {:>8} {:>7.2f} {:>9.1f} {:>9} {:>5.0f} {} ({})", row.rank,
                     row.state, step, row.steps_per_second, row.operations_per_second,
                     HumanBytes(static_cast<uint64_t>(row.bytes_per_second)), row.late_share * 100,
                     row.doing, HumanDuration(row.since_ns));
}

std::string Heading() {
  return fmt::format("{:>6} {:<10} {:>8} {:>7} {:>9} {:>9} {:>5} {}", "rank", "state", "step",
                     "steps/s", "ops/s", "bytes/s", "late%", "doing");
}

template <typename List, typename Text>
void AddSome(const List& list, size_t most, const char* what, const Text& text,
             std::vector<std::string>& lines) {
  size_t shown = 0;
  for (const auto& one : list) {
    if (shown++ == most) {
      lines.push_back(fmt::format("… and {} more {}", list.size() - most, what));
      return;
    }
    lines.push_back(text(one));
  }
}

}  // namespace

std::vector<std::string> TopLines(const TopView& view, size_t most) {
  std::vector<std::string> lines = {JobText(view)};
  AddSome(view.waits, most, "waits", WaitText, lines);
  AddSome(
      view.stragglers, most, "late ranks",
      [&](size_t row) { return StragglerText(view.rows[row]); }, lines);
  for (const std::string& note : view.notes) lines.push_back("note: " + note);
  for (std::string& line : lines) line = PlainText(line);
  return lines;
}

TopPage MakeTopPage(const TopView& view, size_t columns, size_t lines, size_t first_row) {
  TopPage page;
  page.lines.push_back("deja top  " + view.trace);
  for (std::string& line : TopLines(view, kMostWaits)) page.lines.push_back(std::move(line));
  // The heading, a row and the keys have room on any screen.
  constexpr size_t kLeastTable = 3;
  if (page.lines.size() + kLeastTable > lines)
    page.lines.resize(std::max(lines, kLeastTable) - kLeastTable);
  else
    page.lines.emplace_back();
  page.heading = page.lines.size();
  page.lines.push_back(Heading());
  const size_t used = page.lines.size() + 1;  // the last line tells the keys
  const size_t room = lines > used ? lines - used : 1;
  const size_t last_first = view.rows.size() > room ? view.rows.size() - room : 0;
  page.first_row = std::min(first_row, last_first);
  const size_t end = std::min(view.rows.size(), page.first_row + room);
  for (size_t i = page.first_row; i < end; ++i) page.lines.push_back(RowText(view.rows[i]));
  page.lines.resize(std::max(page.lines.size(), lines > 0 ? lines - 1 : 0));
  page.lines.push_back(end - page.first_row < view.rows.size()
                           ? fmt::format("q quit   up, down, page up, page down: ranks {}-{} of {}",
                                         view.rows[page.first_row].rank, view.rows[end - 1].rank,
                                         view.rows.size())
                           : "q quit");
  if (page.lines.size() > lines) page.lines.resize(lines);
  for (std::string& line : page.lines) line = Cut(PlainText(line), columns);
  return page;
}

}  // namespace deja::cli

#include "cli/summaries/child_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/events/rank_summary.h"
#include "cli/output.h"
#include "cli/programs/executed_program.h"
#include "cli/summaries/trace_damage.h"

namespace deja::cli {
namespace {

constexpr size_t kProgramWidth = 60;

std::string ProgramOf(const format::TraceHeader& header) {
  std::string text;
  for (std::string_view word : header.process.argv) {
    if (!text.empty()) text += ' ';
    for (char c : word) text += c == '\n' || c == '\t' ? ' ' : c;
  }
  if (text.size() > kProgramWidth) text = text.substr(0, kProgramWidth) + "…";
  return text;
}

std::string Line(const ChildRow& child) {
  return fmt::format("child {}: {}; {} events; {}{}", child.name, child.ended,
                     HumanCount(child.events), child.program,
                     child.damage.empty() ? "" : "; DAMAGED: " + child.damage);
}

}  // namespace

std::optional<NextImage> WasReplaced(const format::RankReader& reader) {
  std::optional<NextImage> next;
  auto cursor = reader.Events();
  while (const format::Event* event = cursor->Next()) {
    const auto* exit = event->As<format::ProcessExit>();
    if (exit == nullptr && event->As<format::Input>() == nullptr) continue;
    next.reset();
    if (exit != nullptr && exit->how == 2)
      next = NextImage{std::string(exit->program), ArgumentsOf(exit->arguments)};
  }
  return next;
}

std::vector<ChildRow> ReadChildren(format::Trace& trace, const format::RankFolder& rank,
                                   Symbolizer& symbolizer) {
  std::vector<ChildRow> rows;
  const auto attempt = static_cast<int>(rank.attempt);
  auto children = trace.Children(rank.rank, attempt);
  if (!children) return rows;
  for (const format::ChildFolder& child : *children) {
    ChildRow row;
    row.name = child.name;
    row.pid = child.origin.pid;
    auto reader = trace.Child(rank.rank, child.name, attempt);
    if (!reader) {
      row.ended = reader.error().message;
      rows.push_back(std::move(row));
      continue;
    }
    const RankSummary summary = ReadRankSummary(**reader);
    const auto next = WasReplaced(**reader);
    row.program = ProgramOf((*reader)->header());
    row.ended = next ? "replaced itself by exec" : summary.HowItEnded(symbolizer);
    if (next && !next->program.empty()) row.ended += " of " + next->program;
    row.damage = FindEventDamage(**reader);
    row.ended_well = row.damage.empty() && (next || summary.EndedWell());
    row.events = (*reader)->totals().events;
    row.bytes = (*reader)->file_bytes();
    row.lost = (*reader)->totals().events_lost + (*reader)->totals().payloads_lost;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::string> ChildLines(const std::vector<ChildRow>& children, size_t most) {
  std::vector<std::string> lines;
  std::vector<bool> shown(children.size(), children.size() <= most);
  size_t left = children.size() <= most ? 0 : most;
  for (const bool well : {false, true})
    for (size_t i = 0; i < children.size() && left > 0; ++i)
      if (!shown[i] && children[i].ended_well == well) {
        shown[i] = true;
        --left;
      }
  size_t hidden = 0;
  size_t hidden_well = 0;
  for (size_t i = 0; i < children.size(); ++i) {
    if (shown[i]) {
      lines.push_back(Line(children[i]));
      continue;
    }
    ++hidden;
    hidden_well += children[i].ended_well ? 1 : 0;
  }
  if (hidden != 0)
    lines.push_back(hidden_well == hidden
                        ? fmt::format("{} more children, all of which ended well", hidden)
                        : fmt::format("{} more children, {} of which did not end well", hidden,
                                      hidden - hidden_well));
  return lines;
}

nlohmann::json ToJson(const std::vector<ChildRow>& children) {
  nlohmann::json list = nlohmann::json::array();
  for (const ChildRow& child : children) {
    list.push_back({{"name", child.name},
                    {"pid", child.pid},
                    {"program", child.program},
                    {"ended", child.ended},
                    {"events", child.events},
                    {"file_bytes", child.bytes}});
    if (!child.damage.empty()) list.back()["damaged"] = child.damage;
  }
  return list;
}

}  // namespace deja::cli

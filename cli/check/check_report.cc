#include "cli/check/check_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace deja::cli {
namespace {

// A word for the shell.
std::string ShellWord(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-./:=,@%+") == std::string::npos;
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string CommandText(std::string text, const CheckedTrace& trace) {
  const size_t run = text.find(" RUN");
  if (run != std::string::npos) text.replace(run + 1, 3, ShellWord(trace.path));
  if (trace.attempt) text += fmt::format(" --attempt {}", *trace.attempt);
  return "deja " + text;
}

std::string WithSite(const check::Side& side) {
  const std::string site = check::Describe(side.site);
  return side.what + (site.empty() ? "" : " at " + site);
}

std::string StepText(uint64_t step) {
  return step == check::kNoStep ? "" : fmt::format(", step {}", step);
}

void AddFinding(const check::Finding& finding, const std::string& title, const CheckedTrace& trace,
                std::vector<std::string>& lines) {
  const auto add = [&](std::string_view label, const std::string& text) {
    lines.push_back(fmt::format("  {:<10} {}", label, text));
  };
  lines.push_back(
      fmt::format("{}: {}{}", title, check::NameOf(finding.kind), StepText(finding.step)));
  lines.push_back("  " + finding.sentence);
  if (!finding.blamed.empty()) add("differs", check::RanksText(finding.blamed));
  if (!finding.waiting.empty()) add("others", check::RanksText(finding.waiting));
  for (const check::Side& side : finding.sides) add(check::RangesText(side.ranks), WithSite(side));
  if (finding.agreed) add("agreed", "last on " + WithSite(*finding.agreed));
  for (const std::string& line : finding.evidence) add("evidence", line);
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < finding.consequences.size() && i < kShown; ++i)
    add("follows", fmt::format("{}: {}", check::NameOf(finding.consequences[i].kind),
                               finding.consequences[i].sentence));
  if (finding.consequences.size() > kShown)
    add("follows", fmt::format("{} more", finding.consequences.size() - kShown));
  for (const std::string& next : finding.next) add("next", CommandText(next, trace));
}

nlohmann::json SideJson(const check::Side& side) {
  nlohmann::json places = nlohmann::json::array();
  for (const check::Place& place : side.site)
    places.push_back({{"file", place.file}, {"line", place.line}, {"function", place.function}});
  nlohmann::json json = {{"ranks", side.ranks}, {"what", side.what}, {"places", places}};
  if (side.comm) {
    json["comm"] = *side.comm;
    json["seq"] = side.seq;
  }
  return json;
}

nlohmann::json FindingJson(const check::Finding& finding, const CheckedTrace& trace) {
  nlohmann::json json = {{"kind", check::NameOf(finding.kind)},
                         {"sentence", finding.sentence},
                         {"ranks", finding.blamed},
                         {"others", finding.waiting},
                         {"evidence", finding.evidence},
                         {"sides", nlohmann::json::array()},
                         {"next", nlohmann::json::array()},
                         {"consequences", nlohmann::json::array()}};
  if (!finding.comm.empty()) {
    json["comm"] = finding.comm;
    json["members"] = finding.members;
  }
  if (finding.number != 0) json["collective"] = finding.number;
  if (finding.step != check::kNoStep) json["step"] = finding.step;
  for (const check::Side& side : finding.sides) json["sides"].push_back(SideJson(side));
  if (finding.agreed) json["agreed"] = SideJson(*finding.agreed);
  for (const std::string& next : finding.next) json["next"].push_back(CommandText(next, trace));
  for (const check::Consequence& one : finding.consequences)
    json["consequences"].push_back({{"kind", check::NameOf(one.kind)}, {"sentence", one.sentence}});
  return json;
}

}  // namespace

std::string ShortLine(const check::Finding& finding) {
  return fmt::format("{}: {}", check::NameOf(finding.kind), finding.sentence);
}

std::vector<std::string> CheckLines(const check::Report& report, const CheckedTrace& trace) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < report.findings.size(); ++i) {
    if (i > 0) lines.emplace_back();
    AddFinding(report.findings[i], i == 0 ? "first cause" : fmt::format("cause {}", i + 1), trace,
               lines);
  }
  if (report.findings.empty())
    lines.push_back(fmt::format("nothing found in {} rank{}{}", trace.ranks,
                                trace.ranks == 1 ? "" : "s",
                                report.is_damaged ? ", as far as they are there" : ""));
  for (const std::string& note : report.notes) lines.push_back("note: " + note);
  return lines;
}

nlohmann::json CheckJson(const check::Report& report, const CheckedTrace& trace) {
  nlohmann::json json = {{"ranks", trace.ranks},
                         {"damaged", report.is_damaged},
                         {"findings", nlohmann::json::array()},
                         {"notes", report.notes}};
  for (const check::Finding& finding : report.findings)
    json["findings"].push_back(FindingJson(finding, trace));
  return json;
}

}  // namespace deja::cli

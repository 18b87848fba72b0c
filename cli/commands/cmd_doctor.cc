// deja doctor: what would keep a job from being recorded, or its replay from being the same.
#include <algorithm>
#include <string_view>

#include "cli/command.h"
#include "cli/doctor/doctor.h"
#include "cli/help/option_list.h"
#include "cli/install_layout.h"
#include "cli/open_trace.h"
#include "cli/output.h"
#include "cli/summaries/program_parts.h"
#include "cli/summaries/trace_damage.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

struct DoctorOptions {
  std::string trace;
  uint32_t rank = 0;
  std::string out;
};
DoctorOptions g_doctor_options;

void AddDoctorOptions(CLI::App& app) {
  app.add_option("TRACE", g_doctor_options.trace,
                 "A trace or a bundle: list the parts of its program that differ on this machine");
  app.add_option("--rank", g_doctor_options.rank, "Rank of the trace")->capture_default_str();
  app.add_option("-o,--out", g_doctor_options.out,
                 "Where the trace would be written (default: here)");
  SetPaths(app, {"--out"});
}

std::string_view NameOf(Severity severity) {
  switch (severity) {
    case Severity::kOk:
      return "ok";
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kProblem:
      return "problem";
  }
  return "problem";
}

size_t Count(const std::vector<Finding>& findings, Severity severity) {
  return static_cast<size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const Finding& finding) { return finding.severity == severity; }));
}

void PrintText(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    PrintLine(fmt::format("{:8} {}: {}", NameOf(finding.severity), finding.id, finding.what));
    if (!finding.fix.empty()) PrintLine("         fix: " + finding.fix);
  }
  PrintLine(fmt::format("{} problems, {} warnings", Count(findings, Severity::kProblem),
                        Count(findings, Severity::kWarning)));
}

void PrintAsJson(const std::vector<Finding>& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : findings)
    list.push_back({{"id", finding.id},
                    {"severity", NameOf(finding.severity)},
                    {"what", finding.what},
                    {"fix", finding.fix}});
  PrintJson({{"problems", Count(findings, Severity::kProblem)},
             {"warnings", Count(findings, Severity::kWarning)},
             {"findings", list}});
}

// What the recorded program consisted of, beside what is here.
// `damage`: of the rank's events.
Status CheckTrace(std::vector<Finding>& findings, std::string& damage) {
  DEJA_ASSIGN_OR_RETURN(const auto trace, OpenTrace(g_doctor_options.trace));
  DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader, trace->Rank(g_doctor_options.rank, -1));
  damage = FindEventDamage(*reader);
  if (!damage.empty())
    findings.push_back({"damaged", Severity::kWarning, "the recording is DAMAGED: " + damage,
                        "take a sound copy of the trace; `deja verify` lists all damage"});
  const ProgramParts parts = ReadProgramParts(*reader);
  size_t packages = 0;
  for (const auto& [folder, of_folder] : parts.packages) packages += of_folder.size();
  const std::vector<Change> changes = WhatChanged(parts);
  for (const Change& change : changes) {
    const bool may_matter = change.part != "kernel";
    findings.push_back({"changed-" + change.part, may_matter ? Severity::kWarning : Severity::kNote,
                        change.text, ""});
  }
  findings.push_back(
      {"program", Severity::kOk,
       fmt::format("{}; compared: the executable, {} libraries, {} modules and {} packages of "
                   "Python, CPU, kernel",
                   changes.empty() ? "all that the recorded program consisted of is here as it was"
                                   : fmt::format("the recorded program differs in {} of its parts",
                                                 changes.size()),
                   parts.libraries.size(), parts.modules.size(), packages),
       ""});
  return {};
}

int RunDoctor(const Context& context) {
  auto python_side = FindPythonDirectory();
  if (!python_side) return FailWith(python_side.error());
  const DoctorRequest request = {context.program, g_doctor_options.out, *python_side};
  std::vector<Finding> findings;
  std::string damage;
  CheckMachine(request, findings);
  if (!g_doctor_options.trace.empty())
    if (const Status checked = CheckTrace(findings, damage); !checked)
      return FailWith(checked.error());
  if (!request.program.empty()) {
    const PythonCommand python = FindPython(request.program);
    CheckProgram(request, python, findings);
    CheckPython(request, python, findings);
  }
  if (context.json)
    PrintAsJson(findings);
  else
    PrintText(findings);
  if (Count(findings, Severity::kProblem) != 0) return kExitFailure;
  return damage.empty() ? kExitOk : kExitDataLoss;
}

}  // namespace

extern const Command kDoctorCommand;
const Command kDoctorCommand = {
    "doctor",
    "List what would make a replay differ, before a run or before a replay",
    "  deja doctor -- torchrun --nproc-per-node 8 train.py\n"
    "  deja doctor --out /scratch/run.deja -- mpirun -n 8 ./prog\n"
    "  deja doctor --json -- python3 train.py\n"
    "  deja doctor    this machine alone\n"
    "  deja doctor run.deja --rank 3    is the recorded program here as it was?\n"
    "The program is not run. Its Python is asked for its torch, and the script's text is read,\n"
    "with the modules beside it. Exit status: 1 if something cannot be recorded or replayed, 3 if "
    "TRACE is\n"
    "damaged.\n",
    true,
    AddDoctorOptions,
    RunDoctor,
};

}  // namespace deja::cli

// deja doctor: what would keep a job from being recorded, or its replay from being the same.
#include <algorithm>
#include <string_view>

#include "cli/command.h"
#include "cli/doctor.h"
#include "cli/install_layout.h"
#include "cli/output.h"

namespace deja::cli {
namespace {

std::string g_out;

void AddDoctorOptions(CLI::App& app) {
  app.add_option("-o,--out", g_out, "Where the trace would be written (default: here)");
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

int RunDoctor(const Context& context) {
  auto python_side = FindPythonDirectory();
  if (!python_side) return FailWith(python_side.error());
  const DoctorRequest request = {context.program, g_out, *python_side};
  std::vector<Finding> findings;
  CheckMachine(request, findings);
  if (!request.program.empty()) {
    const PythonCommand python = FindPython(request.program);
    CheckProgram(request, python, findings);
    CheckPython(request, python, findings);
  }
  if (context.json)
    PrintAsJson(findings);
  else
    PrintText(findings);
  return Count(findings, Severity::kProblem) == 0 ? kExitOk : kExitFailure;
}

}  // namespace

extern const Command kDoctorCommand;
const Command kDoctorCommand = {
    "doctor",
    "Say before a run what would make its replay differ",
    "  deja doctor -- torchrun --nproc-per-node 8 train.py\n"
    "  deja doctor --out /scratch/run.deja -- mpirun -n 8 ./prog\n"
    "  deja doctor --json -- python3 train.py\n"
    "  deja doctor    this machine alone\n"
    "The program is not run. Its Python is asked for its torch, and the script's text is read,\n"
    "with the modules beside it. Exit status: 1 if something cannot be recorded or replayed.\n",
    true,
    AddDoctorOptions,
    RunDoctor,
};

}  // namespace deja::cli

// Asks the job's own Python, by python/deja/doctor/doctor.py, and takes its findings over.
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/doctor/doctor.h"

namespace deja::cli {
namespace {

using nlohmann::json;

Severity SeverityOf(const std::string& name) {
  if (name == "ok") return Severity::kOk;
  if (name == "note") return Severity::kNote;
  return name == "problem" ? Severity::kProblem : Severity::kWarning;
}

std::string TextOf(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void CheckLibraries(const json& answer, std::vector<Finding>& findings) {
  const auto libraries = answer.find("libraries");
  if (libraries == answer.end() || !libraries->is_array()) return;
  for (const json& library : *libraries) {
    if (!library.is_string() || !HasStaticNccl(library.get<std::string>())) continue;
    findings.push_back(
        {"nccl-static", Severity::kProblem,
         library.get<std::string>() + " has NCCL linked into it: its collectives cannot be seen",
         "a PyTorch that uses a shared NCCL: the wheels from PyPI, or a build with "
         "USE_SYSTEM_NCCL=1"});
  }
}

}  // namespace

void CheckPython(const DoctorRequest& request, const PythonCommand& python,
                 std::vector<Finding>& findings) {
  if (python.executable.empty()) return;
  std::vector<std::string> argv = {python.executable};
  argv.insert(argv.end(), python.options.begin(), python.options.end());
  argv.push_back(request.python_side + "/deja/doctor/doctor.py");
  argv.push_back(python.script);
  for (const std::string& word : request.program) argv.push_back(word);
  std::vector<std::pair<std::string, std::string>> variables = python.variables;
  const char* before = std::getenv("PYTHONPATH");
  std::string path = before != nullptr ? before : "";
  for (const auto& [name, value] : variables)
    if (name == "PYTHONPATH") path = value;
  variables.emplace_back("PYTHONPATH", request.python_side + (path.empty() ? "" : ":" + path));
  const CommandOutput output = OutputOf(argv, variables);
  const size_t begin = output.text.find('{');
  const json answer =
      begin == std::string::npos ? json() : json::parse(output.text.substr(begin), nullptr, false);
  if (!answer.is_object() || !answer.contains("findings")) {
    findings.push_back({"python", Severity::kProblem,
                        python.executable + " could not be asked: it ends before it answers",
                        "run it by hand: " + python.executable + " -c 'import torch'"});
    return;
  }
  for (const json& one : answer["findings"])
    if (one.is_object())
      findings.push_back({TextOf(one, "id"), SeverityOf(TextOf(one, "severity")),
                          TextOf(one, "what"), TextOf(one, "fix")});
  CheckLibraries(answer, findings);
}

}  // namespace deja::cli

// What `deja doctor` looks at before a run: the machine, the program's file, and the Python that it
// starts. Nothing here runs the program.
//
// A Finding is one line of the answer. Each check appends its own; none fails: what cannot be
// looked at is a finding, too. Main thread only (checks fork and wait).
#ifndef DEJA_CLI_DOCTOR_DOCTOR_H_
#define DEJA_CLI_DOCTOR_DOCTOR_H_

#include <string>
#include <utility>
#include <vector>

namespace deja::cli {

enum class Severity {
  kOk,
  kNote,     // worth knowing; changes nothing by itself
  kWarning,  // a replay may diverge, or lack something
  kProblem,  // cannot be recorded or replayed as it is
};

struct Finding {
  std::string id;  // stable, for scripts: "gdb", "nccl-static"
  Severity severity = Severity::kOk;
  std::string what;
  std::string fix;  // the setting or action that changes it; empty: there is nothing to do
};

struct DoctorRequest {
  std::vector<std::string> program;
  std::string trace_folder;  // where the trace would be written
  std::string python_side;   // the folder in front of PYTHONPATH
};

// Debugger, ptrace, address-space layout, room on the disk and in shared memory.
void CheckMachine(const DoctorRequest& request, std::vector<Finding>& findings);

// The Python among the words of a command, as far as it shows: the executable, the options that are
// its own, and the script. `torchrun train.py` and `mpirun -n 2 python train.py` have one.
struct PythonCommand {
  std::string executable;  // empty: none was seen
  std::vector<std::string> options;
  std::string script;                                          // empty: none was seen
  std::vector<std::pair<std::string, std::string>> variables;  // NAME=VALUE words before it
};
PythonCommand FindPython(const std::vector<std::string>& program);

// The file of the command and the libraries that it is linked to.
void CheckProgram(const DoctorRequest& request, const PythonCommand& python,
                  std::vector<Finding>& findings);
// Whether the file is an ELF program or library with an NCCL of its own inside.
bool HasStaticNccl(const std::string& path);
// What that Python says of itself, of torch, and of the script's text
// (python/deja/doctor/doctor.py).
void CheckPython(const DoctorRequest& request, const PythonCommand& python,
                 std::vector<Finding>& findings);

// What a command printed; `ok` if it could be started and ended by itself with code 0.
struct CommandOutput {
  bool ok = false;
  std::string text;
};
CommandOutput OutputOf(const std::vector<std::string>& argv,
                       const std::vector<std::pair<std::string, std::string>>& variables = {});

// The file that a shell would start for `word`; empty if there is none.
std::string FindExecutable(const std::string& word);

}  // namespace deja::cli

#endif  // DEJA_CLI_DOCTOR_DOCTOR_H_

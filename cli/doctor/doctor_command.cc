// Commands that the doctor looks through, and those that it asks.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/doctor/doctor.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOutput = size_t{16} << 20;

bool IsPythonName(const std::string& path) {
  return fs::path(path).filename().native().rfind("python", 0) == 0;
}

bool IsAssignment(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0 || word[0] == '-') return false;
  return word.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == equals;
}

// The words of a script's first line, "#!/usr/bin/env python3".
std::vector<std::string> Shebang(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char line[256] = {};
  file.read(line, sizeof line - 1);
  std::string text(line, static_cast<size_t>(file.gcount()));
  if (text.rfind("#!", 0) != 0) return {};
  std::istringstream words(text.substr(2, text.find('\n') - 2));
  std::vector<std::string> list;
  for (std::string word; words >> word;) list.push_back(word);
  return list;
}

// Whether words[0] is a Python; `rest` gets those of its words that are its own options.
bool TakePython(const std::vector<std::string>& words, PythonCommand& python) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (!IsPythonName(words[i])) continue;
    python.executable = FindExecutable(words[i]);
    if (python.executable.empty()) return false;
    for (size_t k = i + 1; k < words.size() && words[k].size() > 1 && words[k][0] == '-'; ++k) {
      if (words[k] == "-m" || words[k] == "-c") break;
      python.options.push_back(words[k]);
      const bool has_argument = words[k] == "-W" || words[k] == "-X";
      if (has_argument && k + 1 < words.size()) python.options.push_back(words[++k]);
    }
    return true;
  }
  return false;
}

std::string ReadAll(int fd) {
  std::string text;
  char piece[4096];
  for (;;) {
    const ssize_t got = read(fd, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    if (text.size() < kMostOutput) text.append(piece, static_cast<size_t>(got));
  }
}

}  // namespace

std::string FindExecutable(const std::string& word) {
  std::error_code error;
  auto fits = [&](const fs::path& path) {
    return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
  };
  if (word.empty()) return {};
  if (word.find('/') != std::string::npos) return fits(word) ? word : std::string();
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    fs::path candidate = fs::path(folder.empty() ? "." : folder) / word;
    if (fits(candidate)) return candidate.string();
  }
  return {};
}

PythonCommand FindPython(const std::vector<std::string>& program) {
  PythonCommand python;
  size_t i = 0;
  for (; i < program.size() && python.executable.empty(); ++i) {
    const std::string& word = program[i];
    if (IsAssignment(word)) {
      const size_t equals = word.find('=');
      python.variables.emplace_back(word.substr(0, equals), word.substr(equals + 1));
      continue;
    }
    const std::string path = FindExecutable(word);
    if (path.empty()) continue;
    if (IsPythonName(path)) {
      TakePython({program.begin() + static_cast<std::ptrdiff_t>(i), program.end()}, python);
    } else if (TakePython(Shebang(path), python) && path.ends_with(".py")) {
      python.script = path;
    }
  }
  std::error_code error;
  for (; i < program.size() && python.script.empty() && !python.executable.empty(); ++i)
    if (program[i].ends_with(".py") && fs::is_regular_file(program[i], error))
      python.script = program[i];
  return python;
}

CommandOutput OutputOf(const std::vector<std::string>& argv,
                       const std::vector<std::pair<std::string, std::string>>& variables) {
  int ends[2];
  if (argv.empty() || pipe2(ends, O_CLOEXEC) != 0) return {};
  std::vector<char*> words;
  words.reserve(argv.size() + 1);
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execvp(words[0], words.data());
    _exit(127);
  }
  close(ends[1]);
  CommandOutput output;
  if (pid > 0) {
    output.text = ReadAll(ends[0]);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    output.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  close(ends[0]);
  return output;
}

}  // namespace deja::cli

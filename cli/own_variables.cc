#include "cli/own_variables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/env_vars.h"

namespace deja::cli {
namespace {

// What Deja's variables are filled up to.
constexpr long kBytes = 8192;
constexpr long kEntries = 48;

bool IsOwn(const std::string& entry) {
  return entry.starts_with(env::kStem) || entry.starts_with("LD_PRELOAD=");
}

// As execvp finds it.
std::string Found(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* path = getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = folder + "/" + program;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

std::string EntryOf(const env::Variable& variable, std::string_view value) {
  return std::string(variable.prefix).append(value);
}

}  // namespace

std::string Entry(const env::Text& variable, std::string_view value) {
  return EntryOf(variable, value);
}

std::string Entry(const env::Choice& variable, std::string_view value) {
  return EntryOf(variable, value);
}

std::string Entry(const env::Number& variable, uint64_t value) {
  return EntryOf(variable, std::to_string(value));
}

std::string Entry(const env::Flag& variable) {
  return EntryOf(variable, "1");
}

NamedValue Named(const env::Text& variable, std::string value) {
  return {variable.name, std::move(value)};
}

NamedValue Named(const env::Choice& variable, std::string value) {
  return {variable.name, std::move(value)};
}

NamedValue Named(const env::Number& variable, uint64_t value) {
  return {variable.name, std::to_string(value)};
}

NamedValue Named(const env::Flag& variable, bool value) {
  return {variable.name, value ? "1" : "0"};
}

NamedValue Named(const env::Names& variable, const std::vector<std::string>& values) {
  return {variable.name, fmt::format("{}", fmt::join(values, ","))};
}

NamedValue Named(const env::Lines& variable, const std::vector<std::string>& values) {
  return {variable.name, fmt::format("{}", fmt::join(values, "\n"))};
}

void PadOwnVariables(std::vector<std::string>& entries, long more) {
  std::erase_if(entries, [](const std::string& entry) { return entry.starts_with(env::kPadStem); });
  long bytes = 0;
  long count = 0;
  for (const std::string& entry : entries) {
    if (!IsOwn(entry)) continue;
    bytes += static_cast<long>(entry.size()) + 1;
    ++count;
  }
  const long pads = kEntries - count;
  std::vector<std::string> added;
  for (long i = 0; i < pads; ++i) {
    added.push_back(fmt::format("{}{:02}=", env::kPadStem, i));
    bytes += static_cast<long>(added.back().size()) + 1;
  }
  const long left = kBytes + more - bytes;
  if (added.empty() || left < 0) return;
  added.back() += std::string(static_cast<size_t>(left), '.');
  entries.insert(entries.end(), added.begin(), added.end());
}

long BytesToRealPath(const std::string& program) {
  const std::string used = Found(program);
  char magic[4] = {};
  std::ifstream(used, std::ios::binary).read(magic, sizeof magic);
  char real[PATH_MAX];
  if (std::string(magic, sizeof magic) != "\177ELF" || realpath(used.c_str(), real) == nullptr)
    return 0;
  return static_cast<long>(std::string(real).size()) - static_cast<long>(used.size());
}

}  // namespace deja::cli

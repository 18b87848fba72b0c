#include "cli/summaries/program_parts.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <ctime>
#include <filesystem>
#include <set>
#include <span>

#include "cli/events/symbolizer.h"
#include "cli/programs/build_id.h"
#include "common/os/cpu.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

// More libraries or modules than that are counted, not listed.
constexpr size_t kMostListed = 8;

std::string Moment(int64_t seconds) {
  const auto time = static_cast<time_t>(seconds);
  tm parts{};
  gmtime_r(&time, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

// Entries as docs/FORMAT.md, "Input files", has them.
void AddEntries(std::string_view entries, Packages& packages) {
  while (entries.size() > 1) {
    const std::string name(entries.substr(1, entries.find('\0') - 1));
    AddPackage(name, packages);
    entries.remove_prefix(std::min(entries.size(), name.size() + 2));
  }
}

std::string EntriesOf(const format::RankReader& reader, const format::InputFile& folder) {
  if (folder.entries_hash.IsZero()) return std::string(folder.entries);
  std::string entries(reader.PayloadSize(folder.entries_hash).value_or(0), '\0');
  const Status read =
      reader.ReadPayload(folder.entries_hash, std::as_writable_bytes(std::span(entries)));
  return read ? entries : "";
}

Packages PackagesHere(const std::string& folder) {
  Packages here;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    AddPackage(entry.path().filename().string(), here);
  return here;
}

// ".../site-packages/numpy" of a module below it; empty: it is in no package's folder.
std::string PackageOf(const std::string& path) {
  for (const std::string name : {"/site-packages/", "/dist-packages/"}) {
    const size_t at = path.rfind(name);
    if (at == std::string::npos) continue;
    return path.substr(0, path.find('/', at + name.size()));
  }
  return {};
}

void ComparePackages(const ProgramParts& recorded, std::vector<Change>& changes) {
  for (const auto& [folder, before] : recorded.packages) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
      changes.push_back({"package", fmt::format("the folder {} is not here", folder)});
      continue;
    }
    const Packages now = PackagesHere(folder);
    for (const auto& [name, version] : before) {
      auto here = now.find(name);
      if (here == now.end())
        changes.push_back(
            {"package", fmt::format("{} {} is not in {} any more", name, version, folder)});
      else if (here->second != version)
        changes.push_back(
            {"package", fmt::format("{} {} recorded, {} here", name, version, here->second)});
    }
    for (const auto& [name, version] : now)
      if (before.count(name) == 0)
        changes.push_back(
            {"package", fmt::format("{} {} was installed since the recording", name, version)});
  }
}

struct ChangedModules {
  size_t loaded = 0;
  std::vector<std::string> changes;
};

void AddListed(const char* part, const std::vector<std::string>& texts,
               std::vector<Change>& changes) {
  for (size_t i = 0; i < std::min(texts.size(), kMostListed); ++i)
    changes.push_back({part, texts[i]});
  if (texts.size() > kMostListed)
    changes.push_back({part, fmt::format("{} more are others", texts.size() - kMostListed)});
}

// Empty: it is as it was.
std::string ChangeOf(const std::string& path, const RecordedModule& module) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return fmt::format("{} is not here", path);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size != module.size)
    return fmt::format("{}: {} bytes recorded, {} here", path, module.size, size);
  if (info.st_mtim.tv_sec != module.mtime_s)
    return fmt::format("{}: changed at {} recorded, at {} here, with as many bytes", path,
                       Moment(module.mtime_s), Moment(info.st_mtim.tv_sec));
  return {};
}

void CompareModules(const ProgramParts& recorded, std::vector<Change>& changes) {
  std::map<std::string, ChangedModules> by_package;
  for (const auto& [path, module] : recorded.modules) {
    ChangedModules& all = by_package[PackageOf(path)];
    ++all.loaded;
    if (std::string change = ChangeOf(path, module); !change.empty())
      all.changes.push_back(std::move(change));
  }
  for (const auto& [package, all] : by_package) {
    // Those of a package change together.
    if (!package.empty() && all.changes.size() > 1) {
      changes.push_back({"module", fmt::format("{} of {} modules of {} are others",
                                               all.changes.size(), all.loaded, package)});
      continue;
    }
    AddListed("module", all.changes, changes);
  }
}

void CompareLibraries(const ProgramParts& recorded, std::vector<Change>& changes) {
  std::vector<std::string> others;
  for (const auto& [path, build_id] : recorded.libraries) {
    std::error_code error;
    if (!fs::exists(path, error))
      others.push_back(fmt::format("{} is not here", path));
    else if (BuildIdOf(path) != build_id)
      others.push_back(fmt::format("{} is another build", path));
  }
  AddListed("library", others, changes);
}

std::string KernelHere() {
  utsname names{};
  if (uname(&names) != 0) return {};
  return fmt::format("{} {} {} {}", names.sysname, names.release, names.machine, names.version);
}

}  // namespace

void AddPackage(const std::string& entry, Packages& packages) {
  for (const std::string ending : {".dist-info", ".egg-info"}) {
    if (!entry.ends_with(ending)) continue;
    std::string name = entry.substr(0, entry.size() - ending.size());
    // An egg's name goes on with Python's version.
    if (const size_t python = name.rfind("-py3"); ending == ".egg-info" && python != name.npos)
      name = name.substr(0, python);
    const size_t dash = name.find('-');
    packages[name.substr(0, dash)] = dash == name.npos ? "" : name.substr(dash + 1);
  }
}

ProgramParts ReadProgramParts(const format::RankReader& reader) {
  ProgramParts parts;
  const format::ProcessInfo& process = reader.header().process;
  parts.executable = std::string(process.executable);
  parts.executable_build_id = std::string(process.executable_build_id);
  parts.cpu_features = std::string(process.cpu_features);
  parts.kernel = std::string(process.kernel);
  constexpr uint32_t kTelling =
      KindBit(format::EventKind::kInputFile) | KindBit(format::EventKind::kModuleLoaded);
  auto cursor = reader.Events();
  while (const format::Event* event = cursor->NextOf(kTelling)) {
    if (const auto* module = event->As<format::ModuleLoaded>()) {
      const std::string path(module->path);
      if (path.starts_with('/') && !module->build_id.empty() && !IsDejaModule(path) &&
          path != parts.executable)
        parts.libraries[path] = std::string(module->build_id);
    } else if (const auto* file = event->As<format::InputFile>(); file && file->program) {
      const std::string path(file->path);
      if (S_ISDIR(file->mode))
        AddEntries(EntriesOf(reader, *file), parts.packages[path]);
      else
        parts.modules[path] = {file->size, file->mtime_ns / 1'000'000'000};
    }
  }
  return parts;
}

std::vector<Change> WhatChanged(const ProgramParts& recorded) {
  std::vector<Change> changes;
  std::error_code error;
  if (!fs::exists(recorded.executable, error))
    changes.push_back({"executable", recorded.executable + " is not here"});
  else if (BuildIdOf(recorded.executable) != recorded.executable_build_id)
    changes.push_back({"executable", recorded.executable + " is another build"});
  ComparePackages(recorded, changes);
  CompareModules(recorded, changes);
  CompareLibraries(recorded, changes);
  const std::string features = CpuFeatures();
  if (!recorded.cpu_features.empty() && recorded.cpu_features != features)
    changes.push_back({"cpu", fmt::format("its instruction sets are others ({} recorded, {} here)",
                                          recorded.cpu_features, features)});
  const std::string kernel = KernelHere();
  if (!recorded.kernel.empty() && recorded.kernel != kernel)
    changes.push_back({"kernel", fmt::format("{} recorded, {} here", recorded.kernel, kernel)});
  return changes;
}

}  // namespace deja::cli

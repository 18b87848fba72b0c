// What a recorded program consisted of, and which of these parts differ on this machine now. The
// parts are the executable, shared libraries, modules and packages of Python, the CPU's instruction
// sets, and the kernel.
//
// Values; main thread only. The comparison is with this machine's files. A trace may be from
// another machine, and nothing in it is trusted but the names of paths.
#ifndef DEJA_CLI_SUMMARIES_PROGRAM_PARTS_H_
#define DEJA_CLI_SUMMARIES_PROGRAM_PARTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "format/reader/rank_reader.h"

namespace deja::cli {

struct RecordedModule {
  uint64_t size = 0;
  int64_t mtime_s = 0;
};

// Name to version, of one folder; "" where the name has none.
using Packages = std::map<std::string, std::string>;

struct ProgramParts {
  std::string executable;
  std::string executable_build_id;                // raw bytes; empty: it has none
  std::map<std::string, std::string> libraries;   // path to build id, raw bytes
  std::map<std::string, RecordedModule> modules;  // of Python, by path, as they were last
  std::map<std::string, Packages> packages;       // by folder
  std::string cpu_features;
  std::string kernel;
};

ProgramParts ReadProgramParts(const format::RankReader& reader);

// "numpy-1.26.4.dist-info" is numpy of version 1.26.4.
void AddPackage(const std::string& entry, Packages& packages);

struct Change {
  std::string part;  // "executable", "package", "module", "library", "cpu", "kernel"
  std::string text;  // "numpy 1.26.4 recorded, 2.0.1 here"
};

// An entry for each part that is not here as it was, the likeliest cause of another behaviour
// first: executable, packages, modules, libraries, CPU, kernel. Many modules of one package are one
// entry.
std::vector<Change> WhatChanged(const ProgramParts& recorded);

}  // namespace deja::cli

#endif  // DEJA_CLI_SUMMARIES_PROGRAM_PARTS_H_

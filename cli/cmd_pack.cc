// deja pack, deja unpack: a trace as one file for a bug report, and back.
#include <fmt/format.h>

#include <filesystem>

#include "cli/command.h"
#include "cli/output.h"
#include "format/trace.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string trace;
  std::string out;
};
Options g_options;

std::string WithoutTrailingSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

void AddPackOptions(CLI::App& app) {
  app.add_option("TRACE", g_options.trace, "A trace directory")->required();
  app.add_option("--out", g_options.out, "The bundle (default: TRACE.zip)");
}

int RunPack(const Context& context) {
  std::string trace = WithoutTrailingSlash(g_options.trace);
  std::string out = g_options.out.empty() ? trace + ".zip" : g_options.out;
  auto bundle = format::WriteBundle(trace, out);
  if (!bundle) return FailWith(bundle.error());
  if (context.json) {
    PrintJson({{"bundle", bundle->path}, {"bytes", bundle->bytes}, {"files", bundle->files}});
  } else {
    PrintLine(
        fmt::format("{}: {}, {} files", bundle->path, HumanBytes(bundle->bytes), bundle->files));
  }
  return kExitOk;
}

void AddUnpackOptions(CLI::App& app) {
  app.add_option("BUNDLE", g_options.trace, "A bundle (NAME.deja.zip)")->required();
  app.add_option("--out", g_options.out,
                 "The directory to make (default: the bundle's name without .zip)");
}

int RunUnpack(const Context& context) {
  std::string out = g_options.out;
  if (out.empty()) {
    fs::path name = fs::path(g_options.trace).filename();
    out = name.extension() == ".zip" ? name.stem().string() : name.string() + ".deja";
  }
  std::error_code error;
  if (fs::exists(out, error)) {
    Diagnose(fmt::format("unpacking {} to {}: it exists already; give another name with --out",
                         g_options.trace, out));
    return kExitFailure;
  }
  auto trace = format::Trace::Open(g_options.trace);
  if (!trace) return FailWith(trace.error());
  fs::copy((*trace)->directory(), out, fs::copy_options::recursive, error);
  if (error) {
    Diagnose(fmt::format("unpacking {} to {}: {}", g_options.trace, out, error.message()));
    return kExitFailure;
  }
  if (context.json) {
    PrintJson({{"trace", out}, {"ranks", (*trace)->ranks().size()}});
  } else {
    PrintLine(fmt::format("{}: {} ranks", out, (*trace)->ranks().size()));
  }
  return kExitOk;
}

}  // namespace

extern const Command kPackCommand;
const Command kPackCommand = {
    "pack",
    "Pack a trace into one file for a bug report",
    "  deja pack run.deja                     writes run.deja.zip\n"
    "  deja pack run.deja --out /tmp/bug.zip\n"
    "A bundle works wherever a directory does: `deja replay run.deja.zip --rank 2`.\n",
    false,
    AddPackOptions,
    RunPack,
};

extern const Command kUnpackCommand;
const Command kUnpackCommand = {
    "unpack",
    "Unpack a bundle into a trace directory",
    "  deja unpack run.deja.zip               makes run.deja\n",
    false,
    AddUnpackOptions,
    RunUnpack,
};

}  // namespace deja::cli

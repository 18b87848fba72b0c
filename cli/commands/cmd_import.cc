// deja import: dumps of PyTorch's Flight Recorder become a trace.
#include <fmt/format.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/help/option_list.h"
#include "cli/import/flight_dump.h"
#include "cli/import/import_trace.h"
#include "cli/output.h"
#include "cli/pack/staged_output.h"

namespace deja::cli {
namespace {

struct ImportOptions {
  std::vector<std::string> dumps;
  std::string out;
};
ImportOptions g_import_options;

void AddImportOptions(CLI::App& app) {
  app.add_option("DUMP", g_import_options.dumps,
                 "Dumps of PyTorch's Flight Recorder, pickled or JSON, one of each rank, or "
                 "folders of them; a name ends with its rank")
      ->required()
      ->expected(1, -1);
  app.add_option("-o,--out", g_import_options.out, "The trace directory to make")->required();
  SetPaths(app, {"--out"});
}

int RunImport(const Context& context) {
  umask(077);  // what is recorded is for its user alone
  const auto staged = StagedOutput::For(g_import_options.out);
  if (!staged) return FailWith(staged.error());
  const auto dumps = ReadFlightDumps(g_import_options.dumps);
  if (!dumps) return FailWith(dumps.error());
  const auto imported = ImportTrace(*dumps, staged->path());
  if (!imported) return FailWith(imported.error());
  if (const auto published = staged->Publish({staged->path()}); !published)
    return FailWith(published.error());
  if (context.json) {
    PrintJson({{"trace", g_import_options.out},
               {"ranks", dumps->size()},
               {"world_size", imported->world_size},
               {"operations", imported->operations},
               {"missing", imported->missing}});
    return kExitOk;
  }
  PrintLine(fmt::format("{}: {} operations of {} rank{}; it has no tensors and does not replay",
                        g_import_options.out, HumanCount(imported->operations), dumps->size(),
                        dumps->size() == 1 ? "" : "s"));
  for (const std::string& line : imported->missing) PrintLine("  " + line);
  return kExitOk;
}

}  // namespace

extern const Command kImportCommand;
const Command kImportCommand = {
    "import",
    "Make a trace of PyTorch Flight Recorder dumps, for check, report and export",
    "  deja import /tmp/nccl_trace_rank_* --out run.deja    then: deja check run.deja\n"
    "  deja import dumps/ --out run.deja --json\n",
    false,
    AddImportOptions,
    RunImport,
};

}  // namespace deja::cli

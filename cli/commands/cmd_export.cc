// deja export: a trace for other tools.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "check/check.h"
#include "check/evidence/job.h"
#include "cli/check/check_places.h"
#include "cli/check/read_summaries.h"
#include "cli/command.h"
#include "cli/events/symbolizer.h"
#include "cli/export/formats.h"
#include "cli/export/parquet.h"
#include "cli/export/tensor_file.h"
#include "cli/help/option_list.h"
#include "cli/open_trace.h"
#include "cli/output.h"
#include "cli/output_name.h"
#include "cli/pack/staged_output.h"
#include "cli/progress.h"
#include "cli/summaries/trace_damage.h"
#include "cli/tensors/tensor_lookup.h"
#include "cli/version.h"
#include "digest/digest.h"
#include "digest/elements.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

struct ExportOptions {
  std::string trace;
  std::string format;
  std::string out;
  std::string tensor;
  uint32_t rank = 0;
  bool input = false;
  bool no_operations = false;
  bool only_ranks = false;
  std::vector<std::string> binaries;
};
ExportOptions g_export_options;

// A folder of tables, which Python writes.
constexpr const char* kParquet = "parquet";

// Calls of a communicator that are kept, of all ranks together: 64 bytes each.
constexpr size_t kMostExportedCalls = size_t{16} << 20;

void AddExportOptions(CLI::App& app) {
  std::vector<std::string> names;
  for (const ExportFormat& format : ExportFormats()) names.emplace_back(format.name);
  names.emplace_back(kParquet);
  for (const TensorFormat& format : TensorFormats()) names.emplace_back(format.name);
  app.add_option("TRACE", g_export_options.trace, "A trace directory or a bundle")->required();
  app.add_option("--format", g_export_options.format,
                 "perfetto: for ui.perfetto.dev (default); chrome: JSON of chrome://tracing; fr: a "
                 "folder of PyTorch Flight Recorder dumps; parquet: a folder of tables, by python3 "
                 "with pyarrow; json, csv: for scripts. With --tensor: "
                 "npy, safetensors, pt (torch.load); default: by the ending of --out, else npy")
      ->check(CLI::IsMember(names));
  app.add_option("-o,--out", g_export_options.out,
                 "The file or folder to write (default: TRACE's name in the working directory)");
  app.add_flag("--no-operations", g_export_options.no_operations,
               "With json: ranks, communicators and findings alone");
  app.add_flag("--only-ranks", g_export_options.only_ranks,
               "With json: ranks, without their steps, and communicators alone; reads few events");
  AddBinariesOption(app, g_export_options.binaries);
  auto* tensor =
      app.add_option("--tensor", g_export_options.tensor,
                     "Instead: the result of operation COMM:SEQ, or NAME[@STEP] that the "
                     "program has shown; in npy bfloat16 is uint16, float8 uint8");
  app.add_option("--rank", g_export_options.rank, "With --tensor: the rank (default 0)")
      ->needs(tensor);
  app.add_flag("--input", g_export_options.input, "With --tensor: the input, not the result")
      ->needs(tensor);
  SetPaths(app, {"--out"});
  SetGroups(app, {{"Tensors", {"--tensor", "--rank", "--input"}}});
}

// Null: that format is one of tensors.
const ExportFormat* ChosenFormat() {
  const auto formats = ExportFormats();
  if (g_export_options.format.empty()) return &formats.front();
  const auto it = std::find_if(formats.begin(), formats.end(), [](const ExportFormat& format) {
    return g_export_options.format == format.name;
  });
  return it == formats.end() ? nullptr : &*it;
}

// Null: that format is none of tensors.
const TensorFormat* ChosenTensorFormat() {
  if (!g_export_options.format.empty()) return TensorFormatNamed(g_export_options.format);
  const TensorFormat* named = TensorFormatOfFile(g_export_options.out);
  return named == nullptr ? &TensorFormats().front() : named;
}

// The tensor that was asked for, as a file.
// `damage`: of the rank's events.
Status WriteTensor(const std::string& path, const TensorFormat& format, FoundTensor& written,
                   std::string& damage) {
  DEJA_ASSIGN_OR_RETURN(const TensorName name, ParseTensorName(g_export_options.tensor));
  DEJA_ASSIGN_OR_RETURN(const auto trace, OpenTrace(g_export_options.trace));
  DEJA_ASSIGN_OR_RETURN(const format::RankReader* reader, trace->Rank(g_export_options.rank));
  damage = FindEventDamage(*reader);
  DEJA_ASSIGN_OR_RETURN(const auto tensors, FindTensors(*reader, name));
  written = ChooseTensor(tensors, g_export_options.input);
  auto bytes = ReadTensor(*reader, written.tensor);
  if (!bytes)
    return Fail(bytes.error().code, fmt::format("exporting: tensor {} of rank {}: {}", name.Text(),
                                                g_export_options.rank, bytes.error().message));
  const uint32_t size = std::max(digest::ElementSize(written.tensor.dtype), uint32_t{1});
  return format.write({name.Text(), written.tensor.dtype, bytes->size() / size, *bytes}, path);
}

int ExportTensor(const Context& context) {
  const TensorFormat* format = ChosenTensorFormat();
  if (format == nullptr) {
    Diagnose(
        fmt::format("exporting: --format {}: not a format of tensors; give npy, safetensors "
                    "or pt",
                    g_export_options.format));
    return kExitUsage;
  }
  const std::string out = g_export_options.out.empty()
                              ? OutputNameFor(g_export_options.trace, format->ending)
                              : g_export_options.out;
  auto staged = StagedOutput::For(out);
  if (!staged) return FailWith(staged.error());
  FoundTensor tensor;
  std::string damage;
  Progress progress("writing " + out);
  const Status written = WriteTensor(staged->path(), *format, tensor, damage);
  if (!damage.empty()) SayDamaged(fmt::format("rank {}", g_export_options.rank), damage);
  if (!written) {
    const int code = FailWith(written.error());
    return damage.empty() ? code : kExitDataLoss;
  }
  if (auto published = staged->Publish({staged->path()}); !published)
    return FailWith(published.error());
  const std::string type = digest::DTypeText(tensor.tensor.dtype);
  if (context.json)
    PrintJson({{"export", out},
               {"format", format->name},
               {"dtype", type},
               {"count", tensor.tensor.count},
               {"is_result", tensor.role == TensorRole::kResult}});
  else
    PrintLine(fmt::format("{}: {} {}[{}]", out, NameOf(tensor.role), type, tensor.tensor.count));
  return damage.empty() ? kExitOk : kExitDataLoss;
}

int ExportParquet(const Context& context) {
  const std::string out = g_export_options.out.empty()
                              ? OutputNameFor(g_export_options.trace, ".parquet")
                              : g_export_options.out;
  auto staged = StagedOutput::For(out);
  if (!staged) return FailWith(staged.error());
  Progress progress("writing " + out);
  const auto written = WriteParquet(g_export_options.trace, staged->path());
  if (!written) return FailWith(written.error());
  if (auto published = staged->Publish({staged->path()}); !published)
    return FailWith(published.error());
  if (context.json) {
    PrintJson({{"export", out},
               {"format", kParquet},
               {"rows", written->rows},
               {"damaged", written->is_damaged}});
  } else {
    std::string tables;
    for (const auto& [table, rows] : written->rows)
      tables += fmt::format("{}{} {}", tables.empty() ? "" : ", ", table, HumanCount(rows));
    PrintLine(fmt::format("{}: {}", out, tables));
  }
  return written->is_damaged ? kExitDataLoss : kExitOk;
}

int RunExport(const Context& context) {
  if (!g_export_options.tensor.empty()) return ExportTensor(context);
  const ExportFormat* format = ChosenFormat();
  if (format == nullptr && g_export_options.format != kParquet) {
    Diagnose(fmt::format("exporting: --format {}: a format of one tensor; name it with --tensor",
                         g_export_options.format));
    return kExitUsage;
  }
  const bool only_ranks = g_export_options.only_ranks;
  if ((g_export_options.no_operations || only_ranks) && g_export_options.format != "json") {
    Diagnose(fmt::format("exporting: {}: only --format json has other parts",
                         only_ranks ? "--only-ranks" : "--no-operations"));
    return kExitUsage;
  }
  if (format == nullptr) return ExportParquet(context);
  const std::string out = g_export_options.out.empty()
                              ? OutputNameFor(g_export_options.trace, format->ending)
                              : g_export_options.out;
  auto staged = StagedOutput::For(out);
  if (!staged) return FailWith(staged.error());
  Symbolizer symbolizer;
  for (const std::string& directory : g_export_options.binaries) symbolizer.AddDirectory(directory);
  CheckPlaces places(symbolizer);
  std::map<uint32_t, RankFacts> facts;
  ReadSummariesOptions options;
  options.operation = "reading";
  options.window_of_all = kMostExportedCalls;
  options.only_heads = only_ranks;
  options.on_rank = [&](const format::RankReader& reader, const check::RankSummary& summary) {
    facts[summary.rank] = only_ranks ? ReadRankHead(reader) : ReadRankFacts(reader);
  };
  auto read = ReadSummaries(g_export_options.trace, places, options);
  if (!read) return FailWith(read.error());
  Progress progress("comparing " + g_export_options.trace);
  const check::Job job(std::move(read->ranks));
  ExportSource source{g_export_options.trace, fmt::format("deja {}", kVersion), job, {}, {}, {}};
  source.has_findings = !only_ranks;
  source.has_operations = !g_export_options.no_operations && !only_ranks;
  if (source.has_findings) source.report = check::Check(job);
  if (source.has_operations) source.operations = check::JoinOperations(job);
  for (const check::RankSummary& rank : job.ranks) source.ranks.push_back(facts[rank.rank]);
  source.report.notes.insert(source.report.notes.end(), read->notes.begin(), read->notes.end());
  source.report.is_damaged = source.report.is_damaged || read->is_damaged;
  progress.Begin("writing " + out);
  if (const Status written = format->write(source, staged->path()); !written)
    return FailWith(written.error());
  if (auto published = staged->Publish({staged->path()}); !published)
    return FailWith(published.error());
  if (context.json)
    PrintJson({{"export", out},
               {"format", format->name},
               {"ranks", job.ranks.size()},
               {"operations", source.operations.size()},
               {"damaged", source.report.is_damaged}});
  else
    PrintLine(fmt::format("{}: {} operations of {} rank{}", out,
                          HumanCount(source.operations.size()), job.ranks.size(),
                          job.ranks.size() == 1 ? "" : "s"));
  return source.report.is_damaged ? kExitDataLoss : kExitOk;
}

}  // namespace

extern const Command kExportCommand;
const Command kExportCommand = {
    "export",
    "Write a trace for other tools: Perfetto, Chrome, PyTorch Flight Recorder, Parquet, JSON, CSV",
    "  deja export run.deja                           run.perfetto-trace, for ui.perfetto.dev\n"
    "  deja export run.deja --format fr --out dumps   then: torchfrtrace dumps\n"
    "  deja export run.deja --format csv --out run.csv\n"
    "  deja export run.deja --format parquet          run.parquet/operations.parquet and others\n"
    "  deja export run.deja --tensor 0:412 --rank 2 --out gradients.npy\n"
    "  deja export run.deja --tensor 0:412 --rank 2 --out gradients.safetensors\n",
    false,
    AddExportOptions,
    RunExport,
};

}  // namespace deja::cli

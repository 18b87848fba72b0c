// deja pack, deja unpack: a trace as one file for a bug report, and back.
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <memory>

#include "cli/command.h"
#include "cli/fence/trust_store.h"
#include "cli/help/option_list.h"
#include "cli/number_range.h"
#include "cli/open_trace.h"
#include "cli/output.h"
#include "cli/pack/bundle_encryption.h"
#include "cli/pack/bundle_texts.h"
#include "cli/pack/folder_copy.h"
#include "cli/pack/pack_preview.h"
#include "cli/pack/redactor.h"
#include "cli/pack/staged_output.h"
#include "cli/progress.h"
#include "cli/replay/bounds/bundle_start_check.h"
#include "cli/summaries/trace_damage.h"
#include "format/pack/bundle_writer.h"
#include "format/trace/bundle_parts.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

struct PackOptions {
  std::string trace;
  std::string out;
  std::string steps;
  std::vector<std::string> ranks;
  std::string level = "full";
  uint64_t max_size = 0;
  int zstd_level = 0;
  bool predict = false;
  bool redact = false;
  bool dry_run = false;
  std::vector<std::string> keep_env;
  std::vector<std::string> mask;
  std::string encrypt_to;
  uint64_t split = 0;
};
PackOptions g_pack_options;

constexpr mode_t kOwnOnly = 077;  // a umask

std::string WithoutTrailingSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

void AddPackOptions(CLI::App& app) {
  AddTraceArgument(app, "TRACE", g_pack_options.trace);
  app.add_option("-o,--out", g_pack_options.out, "The bundle (default: TRACE.zip)");
  app.add_option("--ranks", g_pack_options.ranks,
                 "Payloads of these ranks only, e.g. 2 or 0-3,7, with those that other ranks keep "
                 "for them; the events of all ranks stay")
      ->delimiter(',');
  app.add_option("--steps", g_pack_options.steps,
                 "Payloads of these steps only (A, A-B, A- or -B), and of the time before the "
                 "first step");
  app.add_option("--level", g_pack_options.level,
                 "full: all that is recorded; digest: no bytes of tensors; order: no hashes and "
                 "statistics of tensors either")
      ->check(CLI::IsMember({"order", "digest", "full"}))
      ->capture_default_str();
  app.add_option("--max-size", g_pack_options.max_size,
                 "The best bundle of at most N bytes, e.g. 25M: leaves out payloads of other "
                 "ranks, then of the oldest steps, then all; never events or digests")
      ->transform(CLI::AsSizeValue(true));
  app.add_flag("--predict", g_pack_options.predict,
               "Store checkpoints as differences to what the optimizer makes of the checkpoint "
               "before and the recorded gradients (deja_update in deja.h, deja.torch.watch). "
               "Packing and reading take longer; not with --max-size");
  app.add_option("--zstd-level", g_pack_options.zstd_level,
                 "Compress events and index again at this level, and payloads, too, where that "
                 "makes them smaller than byte planes are (19: smallest, slow)")
      ->check(CLI::Range(1, 22));
  app.add_flag("--redact", g_pack_options.redact,
               "Replace names of hosts and users, paths, addresses and values of the "
               "environment; mask what looks like a secret in received or read bytes. The bundle "
               "still replays");
  app.add_option("--keep-env", g_pack_options.keep_env,
                 "With --redact: keep the values of these variables (patterns with * and ?, "
                 "separated by commas)")
      ->delimiter(',');
  app.add_option("--mask", g_pack_options.mask,
                 "With --redact: mask these variables, options and headers, whatever their values "
                 "(patterns)")
      ->delimiter(',');
  app.add_flag("--dry-run", g_pack_options.dry_run,
               "Write nothing; show every file and kind of string that would be in the bundle");
  app.add_option("--encrypt-to", g_pack_options.encrypt_to,
                 "Encrypt the bundle to this recipient: of age (age1…, ssh-…) or gpg (a key)");
  app.add_option("--split", g_pack_options.split,
                 "Write the bundle in parts of at most N bytes, e.g. 25M; every command opens "
                 "NAME.zip.001 where the others are beside it")
      ->transform(CLI::AsSizeValue(true));
  SetPaths(app, {"--out"});
  SetGroups(app, {{"What is packed", {"--ranks", "--steps", "--level"}},
                  {"Size", {"--max-size", "--predict", "--zstd-level", "--split"}},
                  {"Secrets", {"--redact", "--keep-env", "--mask", "--dry-run", "--encrypt-to"}},
                  {"Where", {"--out"}}});
}

std::string PatternList(const std::vector<std::string>& patterns) {
  return fmt::format("{}", fmt::join(patterns, ","));
}

// The same for a pack and for its preview.
std::unique_ptr<Redactor> MakeRedactor(std::string& keep, std::string& mask) {
  keep = PatternList(g_pack_options.keep_env);
  mask = PatternList(g_pack_options.mask);
  return g_pack_options.redact ? std::make_unique<Redactor>(keep, mask) : nullptr;
}

int ShowWhatWouldGo(const Context& context, const std::string& path, Redactor* redactor) {
  const auto trace = OpenTrace(path);
  if (!trace) return FailWith(trace.error());
  const auto preview = PackPreview::Make(**trace, redactor);
  if (!preview) return FailWith(preview.error());
  if (context.json)
    PrintJson(preview->ToJson());
  else
    preview->Print();
  return kExitOk;
}

// Where the trace has contents of files, and nothing is done about them.
Status WarnOfSecretFiles(const std::string& path) {
  DEJA_ASSIGN_OR_RETURN(const auto trace, OpenTrace(path));
  DEJA_ASSIGN_OR_RETURN(const std::vector<KeptFile> files, ReadKeptFiles(*trace));
  for (const KeptFile& file : files) {
    if (file.warning.empty()) continue;
    Diagnose(
        fmt::format("packing: {}: the bundle holds its contents: {}; mask them with --redact, or "
                    "leave the file out with `deja record --inputs-exclude`",
                    file.path, file.warning));
  }
  return {};
}

Result<format::PackOptions> MakePackOptions() {
  format::PackOptions options;
  DEJA_ASSIGN_OR_RETURN(options.ranks, ParseRanks(g_pack_options.ranks));
  DEJA_ASSIGN_OR_RETURN(const NumberRange steps, ParseRange("--steps", g_pack_options.steps));
  if (!g_pack_options.steps.empty()) options.steps = {steps.from, steps.to};
  if (g_pack_options.level == "order") options.level = Level::kOrder;
  if (g_pack_options.level == "digest") options.level = Level::kDigest;
  options.max_bytes = g_pack_options.max_size;
  options.zstd_level = g_pack_options.zstd_level;
  options.predict = g_pack_options.predict;
  if (options.predict && options.max_bytes != 0) {
    return Fail(
        ErrorCode::kInvalidArgument,
        "packing: --predict: it needs the steps before each checkpoint, and --max-size keeps the "
        "last steps first; give one of them, or --steps for a part of the recording");
  }
  return options;
}

// Prints one line for all ranks with the same omission.
void PrintLeftOut(const std::vector<format::BundleOmission>& left_out) {
  struct Line {
    std::string who;
    size_t folders = 0;
    uint64_t payloads = 0;
    uint64_t bytes = 0;
  };
  constexpr size_t kMost = 8;
  std::map<std::string, Line> lines;
  for (const format::BundleOmission& one : left_out) {
    Line& line = lines[one.what];
    line.payloads += one.payloads;
    line.bytes += one.payload_bytes;
    if (++line.folders > kMost) continue;
    line.who += fmt::format("{}rank {}{}", line.who.empty() ? "" : ", ", one.rank,
                            one.child.empty() ? "" : " child " + one.child);
  }
  for (const auto& [what, line] : lines)
    PrintLine(fmt::format(
        "left out: {} payloads of {} of {}{} ({})", HumanCount(line.payloads),
        HumanBytes(line.bytes), line.who,
        line.folders > kMost ? fmt::format(" and {} more", line.folders - kMost) : "", what));
}

// From where a bundle of some steps can be replayed.
Result<PackStart> HowItStarts(const std::string& trace, const format::PackOptions& options,
                              const format::BundleResult& bundle) {
  if (options.level != Level::kFull || bundle.left_out.empty()) return PackStart();
  if (options.max_bytes != 0) {
    DEJA_ASSIGN_OR_RETURN(const auto packed, OpenTrace(bundle.path));
    return HowABundleStarts(*packed);
  }
  if (!options.steps) return PackStart();
  DEJA_ASSIGN_OR_RETURN(const auto recorded, OpenTrace(trace));
  return HowAPackStarts(*recorded, *options.steps, options.ranks);
}

// A copy of what the user has recorded, or agreed to run, is that, too.
void PassTrust(const std::string& from, const std::string& to) {
  const TrustStore store;
  if (const Trust trust = store.Of(from); trust != Trust::kNone) (void)store.Add(to, trust);
}

// The files that are left: the bundle, or its parts, encrypted where that was asked for.
Result<std::vector<std::string>> EncryptAndSplit(std::string path) {
  if (!g_pack_options.encrypt_to.empty()) {
    DEJA_ASSIGN_OR_RETURN(path, EncryptFile(path, g_pack_options.encrypt_to));
  }
  if (g_pack_options.split == 0) return std::vector<std::string>{path};
  return format::SplitFile(path, g_pack_options.split);
}

std::string DescribeStandIns(const StandIns& names) {
  constexpr const char* kKinds[kStandInKinds] = {"hosts", "users", "parts of paths", "addresses",
                                                 "values"};
  const auto counts = names.Counts();
  std::string text;
  for (size_t i = 0; i < kStandInKinds; ++i)
    if (counts[i] != 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", HumanCount(counts[i]), kKinds[i]);
  return "stand-ins: " + (text.empty() ? "none" : text);
}

int RunPack(const Context& context) {
  umask(kOwnOnly);

  auto options = MakePackOptions();
  if (!options) {
    Diagnose(options.error().message);
    return kExitUsage;
  }
  std::string trace = WithoutTrailingSlash(g_pack_options.trace);
  std::string keep;
  std::string mask;
  const std::unique_ptr<Redactor> redactor = MakeRedactor(keep, mask);
  if (g_pack_options.dry_run) return ShowWhatWouldGo(context, trace, redactor.get());
  if (!g_pack_options.encrypt_to.empty()) {
    if (const Status can = CanEncryptTo(g_pack_options.encrypt_to); !can)
      return FailWith(can.error());
  }
  const std::string out = g_pack_options.out.empty() ? trace + ".zip" : g_pack_options.out;
  const auto staged = StagedOutput::For(out);
  if (!staged) return FailWith(staged.error());
  Result<format::BundleResult> bundle;
  {
    Progress progress("packing " + trace);
    options->rewriter = redactor.get();
    options->describe = [&](format::Trace& packed) {
      return DescribeBundle(packed, fs::path(out).filename().string());
    };
    options->progress = [&](uint64_t done, uint64_t total) { progress.Update(done, total); };
    bundle = format::WriteBundle(trace, staged->path(), *options);
  }
  if (!bundle) return FailWith(bundle.error());
  PassTrust(trace, bundle->path);
  const auto start = HowItStarts(trace, *options, *bundle);
  if (!start) return FailWith(start.error());
  const auto source = OpenTrace(trace);
  if (!source) return FailWith(source.error());
  const bool damaged = SayIfDamaged(**source);
  const int code = start->replays && !damaged ? kExitOk : kExitDataLoss;
  if (redactor == nullptr) {
    if (const Status warned = WarnOfSecretFiles(trace); !warned) return FailWith(warned.error());
  }
  const auto made = EncryptAndSplit(bundle->path);
  if (!made) return FailWith(made.error());
  const auto parts = staged->Publish(*made);
  if (!parts) return FailWith(parts.error());
  if (!context.json) {
    PrintLine(
        fmt::format("{}: {}, {} files", parts->front(), HumanBytes(bundle->bytes), bundle->files));
    if (parts->size() > 1)
      PrintLine(fmt::format("in {} parts, up to {}", parts->size(), parts->back()));
    if (redactor != nullptr) PrintLine(DescribeStandIns(redactor->stand_ins()));
    PrintLeftOut(bundle->left_out);
    if (!start->text.empty()) PrintLine(start->text);
    return code;
  }
  nlohmann::json left_out = nlohmann::json::array();
  for (const format::BundleOmission& one : bundle->left_out) {
    left_out.push_back({{"rank", one.rank},
                        {"child", one.child},
                        {"payloads", one.payloads},
                        {"payload_bytes", one.payload_bytes},
                        {"what", one.what}});
  }
  nlohmann::json json = {{"bundle", parts->front()},
                         {"parts", *parts},
                         {"bytes", bundle->bytes},
                         {"files", bundle->files},
                         {"left_out", left_out}};
  if (!start->text.empty()) json["start"] = start->text;
  json["replays"] = start->replays;
  PrintJson(json);
  return code;
}

void AddUnpackOptions(CLI::App& app) {
  app.add_option("BUNDLE", g_pack_options.trace, "A bundle (NAME.deja.zip)")->required();
  app.add_option("-o,--out", g_pack_options.out,
                 "The directory to make (default: the bundle's name without .zip)");
  SetPaths(app, {"--out"});
}

int RunUnpack(const Context& context) {
  umask(kOwnOnly);
  std::string out = g_pack_options.out;
  if (out.empty()) {
    fs::path name = fs::path(g_pack_options.trace).filename();
    if (format::IsFirstPart(name.string())) name = name.stem();
    out = name.extension() == ".zip" ? name.stem().string() : name.string() + ".deja";
  }
  std::error_code error;
  if (fs::exists(out, error)) {
    Diagnose(fmt::format("unpacking: {} to {}: it exists already; give another name with --out",
                         g_pack_options.trace, out));
    return kExitFailure;
  }
  const auto staged = StagedOutput::For(WithoutTrailingSlash(out));
  if (!staged) return FailWith(staged.error());
  auto trace = OpenTrace(g_pack_options.trace);
  if (!trace) return FailWith(trace.error());
  if (const Status copied = CopyFolder((*trace)->directory(), staged->path()); !copied) {
    Diagnose(
        fmt::format("unpacking: {} to {}: {}", g_pack_options.trace, out, copied.error().message));
    return kExitFailure;
  }
  if (const auto published = staged->Publish({staged->path()}); !published)
    return FailWith(published.error());
  PassTrust(g_pack_options.trace, out);
  const bool damaged = SayIfDamaged(**trace);
  if (context.json) {
    PrintJson({{"trace", out}, {"ranks", (*trace)->ranks().size()}});
  } else {
    PrintLine(fmt::format("{}: {} ranks", out, (*trace)->ranks().size()));
  }
  return damaged ? kExitDataLoss : kExitOk;
}

}  // namespace

extern const Command kPackCommand;
const Command kPackCommand = {
    "pack",
    "Pack a trace into one file for a bug report",
    "  deja pack run.deja                     writes run.deja.zip\n"
    "  deja pack run.deja --out /tmp/bug.zip\n"
    "  deja pack run.deja --max-size 25M      as much as fits, the last steps of the failed rank "
    "first\n"
    "  deja pack run.deja --ranks 2 --steps 90-100 --out /tmp/rank2.zip\n"
    "  deja pack run.deja --level digest --zstd-level 19\n"
    "  deja pack run.deja --predict          checkpoints follow from gradients where they can\n"
    "  deja pack run.deja --redact --dry-run  lists what the bundle would hold\n"
    "  deja pack run.deja --redact --split 25M\n"
    "A bundle works wherever a directory does: `deja replay run.deja.zip --rank 2`.\n"
    "Exit status 3: the bundle is written, but no rank of it can be replayed.\n",
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

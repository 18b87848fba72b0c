// deja record: run a job and record every rank of it.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/command.h"
#include "cli/doctor/doctor.h"
#include "cli/events/rank_summary.h"
#include "cli/fence/trust_store.h"
#include "cli/install_layout.h"
#include "cli/output.h"
#include "cli/record/launcher.h"
#include "cli/record/trace_claim.h"
#include "cli/record/trace_sweep.h"
#include "cli/record/window_sweep.h"
#include "cli/summaries/window_summary.h"
#include "format/layout/mark.h"
#include "format/layout/rank_folder.h"
#include "format/log/background.h"
#include "format/repair/recovery.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

// A quarter of the free disk, but so much in any case.
constexpr uint64_t kLeastBudget = uint64_t{256} << 20;
constexpr uint64_t kAutomaticBudget = ~uint64_t{0};

struct RecordOptions {
  std::string out;
  std::string level = "full";
  std::string codec = "small";
  std::string cuda_graphs = "record";
  std::string device_digests = "device";
  std::string on_pressure = "block";
  int redundancy = 1;
  uint64_t keep_steps = 0;
  uint64_t checkpoint_every = 0;
  uint64_t keep_bytes = 0;
  uint64_t keep_seconds = 0;
  uint64_t disk_budget = kAutomaticBudget;
  uint64_t hang_after = 0;
  int background_nice = 0;
  bool background_idle_io = false;
  std::string background_cpus;
  uint64_t buffer = 64 << 20;
  uint64_t delta_memory = 64 << 20;
  bool loopback = false;
  bool force = false;
  bool single = false;
  bool fill_memory = false;
  std::string inputs = "digest";
  std::string threads = "off";
  std::vector<std::string> inputs_include;
  std::vector<std::string> inputs_exclude;
  std::vector<std::string> keep_env;
  std::vector<std::string> mask;
  int ranks = 0;
  double grace = 5;
};
RecordOptions g_record_options;

void AddWindowOptions(CLI::App& app) {
  app.add_option(
         "--checkpoint-every", g_record_options.checkpoint_every,
         "Take a checkpoint of what the program has registered (deja.h) every N steps, from "
         "which a replay can start; a window of steps then reaches back to one")
      ->check(CLI::Range(1, 1000000000));
  CLI::Option* steps = app.add_option("--keep-steps", g_record_options.keep_steps,
                                      "Keep the contents of tensors of the last K steps only (and "
                                      "of what came before the first)")
                           ->check(CLI::Range(1, 1000000));
  CLI::Option* bytes =
      app.add_option("--keep-bytes", g_record_options.keep_bytes,
                     "The same for a program that names no steps: the last bytes of each rank, as "
                     "they are on the disk (1048576, or 2GB), and at most as much of all child "
                     "processes together")
          ->transform(CLI::AsSizeValue(false))
          ->check(CLI::Range(uint64_t{1} << 20, uint64_t{1} << 50));
  CLI::Option* seconds = app.add_option("--keep-seconds", g_record_options.keep_seconds,
                                        "The same by time: those of the last seconds")
                             ->check(CLI::Range(1, 1000000000));
  steps->excludes(bytes)->excludes(seconds);
  bytes->excludes(seconds);
  app.add_option("--disk-budget", g_record_options.disk_budget,
                 "What the trace may take on the disk of each machine, of all processes together; "
                 "beyond that the oldest contents of tensors go first (default: a quarter of what "
                 "is free, 256 MiB at least; 0: no limit)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 60))
      ->default_str("");
  app.add_option("--hang-after", g_record_options.hang_after,
                 "Seconds after which the window is kept for good if no rank has been in a "
                 "collective; 0: never")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
}

void AddBackgroundOptions(CLI::App& app) {
  app.add_option("--background-nice", g_record_options.background_nice,
                 "Added to the nice value of the threads that compress and write the trace")
      ->check(CLI::Range(0, 19))
      ->capture_default_str();
  app.add_flag("--background-idle-io", g_record_options.background_idle_io,
               "The disk serves everybody else before those threads (I/O priority idle)");
  app.add_option("--background-cpus", g_record_options.background_cpus,
                 "CPUs for those threads, e.g. 0-3,8 (default: where the program runs)")
      ->check([](const std::string& list) {
        return format::ParseCpuList(list).empty() ? "not a list of CPUs such as 0-3,8"
                                                  : std::string();
      });
}

void AddRecordOptions(CLI::App& app) {
  app.add_option("-o,--out", g_record_options.out,
                 "Trace directory to write (default: deja-PROGRAM-DATE-N.deja here)");
  app.add_option(
         "--level", g_record_options.level,
         "order: calls and their order; digest: also hashes and statistics of tensors; full: "
         "also their bytes")
      ->check(CLI::IsMember({"order", "digest", "full"}))
      ->capture_default_str();
  app.add_flag("--single", g_record_options.single,
               "Record the command itself, whether it makes a communicator or not: as rank 0 of 1 "
               "(a wrapper that execs on hands this over to what it starts)");
  app.add_flag("--loopback", g_record_options.loopback,
               "Start the ranks here, with NCCL in host memory instead of the real one");
  app.add_flag("--fill-memory", g_record_options.fill_memory,
               "What the program allocates with the C library's malloc begins as zeros (by "
               "GLIBC_TUNABLES), also in a replay: for programs that read memory which they have "
               "not written, and diverge by that");
  app.add_option("-n,--ranks", g_record_options.ranks, "With --loopback: number of ranks")
      ->check(CLI::Range(1, 4096));
  app.add_option("--grace", g_record_options.grace,
                 "With --loopback: seconds that the other ranks have when one failed, before they "
                 "are terminated")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--buffer", g_record_options.buffer,
                 "Memory of each rank for payloads that are not written yet (bytes, or 256MB)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{1} << 20, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--delta-memory", g_record_options.delta_memory,
                 "Memory of each rank for the tensors of the step before, to keep only what has "
                 "changed in them (named tensors, the results of the same collective of each "
                 "step, and what checkpoints hold, where that is less); 0: keep each on its own")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--codec", g_record_options.codec,
                 "How the contents of tensors are compressed. small: as small as they get on the "
                 "way; fast: in two thirds of the processor time, without differences to the step "
                 "before, and up to a sixth larger")
      ->check(CLI::IsMember({"small", "fast"}))
      ->capture_default_str();
  app.add_option(
         "--cuda-graphs", g_record_options.cuda_graphs,
         "Calls that are captured into CUDA graphs. record: what they read and write at each "
         "launch, by nodes that are added to the program's graphs; leave: nothing is added, "
         "for graphs that cannot have host nodes (those that are launched from the device), "
         "and a replay ends at the first of these calls")
      ->check(CLI::IsMember({"record", "leave"}))
      ->capture_default_str();
  app.add_option(
         "--device-digests", g_record_options.device_digests,
         "Where digests of device buffers are made, if their bytes are not kept. device: by a "
         "kernel, so that they need not be copied; host: of copies, should the driver not take "
         "Deja's kernels. Hashes, counts and extremes are the same")
      ->check(CLI::IsMember({"device", "host"}))
      ->capture_default_str();
  app.add_option("--on-pressure", g_record_options.on_pressure,
                 "When that memory is full: block the program until there is room, or drop-payload")
      ->check(CLI::IsMember({"block", "drop-payload"}))
      ->capture_default_str();
  app.add_option(
         "--redundancy", g_record_options.redundancy,
         "Of what several ranks of one machine are given, as the result of an all-reduce, so "
         "many of them keep a copy; 0: each keeps its own")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  AddWindowOptions(app);
  AddBackgroundOptions(app);
  app.add_option(
         "--inputs", g_record_options.inputs,
         "What to keep of the files that the program reads: off: nothing; digest: hashes of what "
         "it read, so that a replay notices a file that differs; full: also the bytes, so that a "
         "replay needs none of the files. Left out: /usr, /lib, /etc, /opt, /proc, /sys, /dev, "
         "/run, shared libraries, Python's modules and site-packages, the program itself, and "
         "what the run writes")
      ->check(CLI::IsMember({"off", "digest", "full"}))
      ->capture_default_str();
  app.add_option("--inputs-include", g_record_options.inputs_include,
                 "Files that are inputs although they would be left out: absolute paths with * "
                 "and ?, e.g. --inputs-include '/opt/data/*' (repeatable)")
      ->allow_extra_args(false);
  app.add_option("--inputs-exclude", g_record_options.inputs_exclude,
                 "Files that are no inputs, whatever else is said, e.g. --inputs-exclude "
                 "'*/cache/*' (repeatable)")
      ->allow_extra_args(false);
  app.add_option("--threads", g_record_options.threads,
                 "order: record in which order the threads of each process take locks, so that a "
                 "replay gives it back: for programs whose result depends on which thread comes "
                 "first; off: do not")
      ->check(CLI::IsMember({"off", "order"}))
      ->capture_default_str();
  app.add_option("--keep-env", g_record_options.keep_env,
                 "Store the values of these variables, options and headers even if they look like "
                 "a secret: names with * and ?, e.g. --keep-env 'HF_*' (repeatable)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--mask", g_record_options.mask,
                 "Store a mask instead of these, too, as for what looks like a token, a key or a "
                 "password, e.g. --mask 'MY_*_ID' (repeatable)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--force", g_record_options.force,
               "Replace the trace that --out names, if there is one");
}

std::string DefaultOut(const std::string& program) {
  std::time_t now = std::time(nullptr);
  std::tm date{};
  localtime_r(&now, &date);
  std::string stem = fmt::format("deja-{}-{:04}{:02}{:02}", fs::path(program).filename().string(),
                                 date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
  std::error_code error;
  for (int n = 1;; ++n) {
    std::string name = fmt::format("{}-{}.deja", stem, n);
    if (!fs::exists(name, error) || TraceClaim::CanJoin(name)) return name;
  }
}

int CheckUsage(const Context& context) {
  if (context.program.empty()) {
    Diagnose("record needs a program: `deja record --loopback -n 4 -- ./train`");
    return kExitUsage;
  }
  if (g_record_options.loopback != (g_record_options.ranks > 0)) {
    Diagnose(g_record_options.loopback
                 ? "--loopback needs -n: how many ranks to start"
                 : "-n starts ranks with --loopback only; without it give the job's own launcher, "
                   "as in `deja record -- torchrun --nproc-per-node 4 train.py`");
    return kExitUsage;
  }
  return kExitOk;
}

// Overlong lines help nobody on a terminal that the job writes to as well: shown only where the
// job's own output goes elsewhere.
bool ShowsProgress() {
  return isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) == 0;
}

uint64_t TraceBytes(const std::string& directory) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(directory, error))
    if (entry.is_regular_file(error)) bytes += entry.file_size(error);
  return bytes;
}

uint64_t DiskBudget(const std::string& directory) {
  if (g_record_options.disk_budget != kAutomaticBudget) return g_record_options.disk_budget;
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  return error ? 0 : std::max<uint64_t>(space.available / 4, kLeastBudget);
}

// Blocks that a thread keeps for itself (tcache) are handed out again as they were left, whatever
// the pattern, so there are none of those. Malloc writes the inverse of the pattern.
std::string TunablesThatFillMemory() {
  std::string tunables = "glibc.malloc.perturb=255:glibc.malloc.tcache_count=0";
  const char* others = std::getenv("GLIBC_TUNABLES");
  return others == nullptr || *others == 0 ? tunables : fmt::format("{}:{}", others, tunables);
}

LaunchOptions MakeLaunch(const Context& context, const TraceClaim* claim,
                         const std::string& library, const std::string& python,
                         WindowSweep* window) {
  LaunchOptions launch;
  launch.program = context.program;
  launch.ranks = g_record_options.ranks;
  launch.grace = std::chrono::milliseconds(static_cast<int64_t>(g_record_options.grace * 1000));
  if (claim == nullptr) return launch;
  launch.preload = library;
  launch.python = python;
  launch.fixed_addresses = true;
  if (g_record_options.single) launch.pid_variable = "DEJA_SINGLE";
  launch.environment = {
      {"DEJA_OUT", claim->directory()},
      {"DEJA_JOB_ID", claim->job_id()},
      {"DEJA_LEVEL", g_record_options.level},
      {"DEJA_BUFFER", std::to_string(g_record_options.buffer)},
      {"DEJA_DELTA_MEMORY", std::to_string(g_record_options.delta_memory)},
      {"DEJA_CODEC", g_record_options.codec},
      {"DEJA_CUDA_GRAPHS", g_record_options.cuda_graphs},
      {"DEJA_DEVICE_DIGESTS", g_record_options.device_digests},
      {"DEJA_ON_PRESSURE", g_record_options.on_pressure},
      {"DEJA_REDUNDANCY", std::to_string(g_record_options.redundancy)},
      {"DEJA_KEEP_STEPS", std::to_string(g_record_options.keep_steps)},
      {"DEJA_CHECKPOINT_EVERY", std::to_string(g_record_options.checkpoint_every)},
      {"DEJA_KEEP_BYTES", std::to_string(g_record_options.keep_bytes)},
      {"DEJA_KEEP_SECONDS", std::to_string(g_record_options.keep_seconds)},
      {"DEJA_DISK_BUDGET", std::to_string(DiskBudget(claim->directory()))},
      {"DEJA_HANG_AFTER", std::to_string(g_record_options.hang_after)},
      {"DEJA_BACKGROUND_NICE", std::to_string(g_record_options.background_nice)},
      {"DEJA_BACKGROUND_IDLE_IO", g_record_options.background_idle_io ? "1" : "0"},
      {"DEJA_BACKGROUND_CPUS", g_record_options.background_cpus},
      {"DEJA_INPUTS", g_record_options.inputs},
      {"DEJA_THREADS", g_record_options.threads},
  };
  if (!g_record_options.inputs_include.empty())
    launch.environment.emplace_back(
        "DEJA_INPUTS_INCLUDE", fmt::format("{}", fmt::join(g_record_options.inputs_include, "\n")));
  if (!g_record_options.inputs_exclude.empty())
    launch.environment.emplace_back(
        "DEJA_INPUTS_EXCLUDE", fmt::format("{}", fmt::join(g_record_options.inputs_exclude, "\n")));
  if (!g_record_options.keep_env.empty())
    launch.environment.emplace_back("DEJA_KEEP_ENV",
                                    fmt::format("{}", fmt::join(g_record_options.keep_env, ",")));
  if (!g_record_options.mask.empty())
    launch.environment.emplace_back("DEJA_MASK",
                                    fmt::format("{}", fmt::join(g_record_options.mask, ",")));
  if (g_record_options.fill_memory)
    launch.environment.emplace_back("GLIBC_TUNABLES", TunablesThatFillMemory());
  launch.on_trouble = [directory = claim->directory()](const std::string& what) {
    (void)format::LeaveMark(directory, what);  // a disk that refuses has nothing to keep it on
  };
  launch.tick = [window, directory = claim->directory()] {
    SweepEndedChildren(directory);
    window->Pass();
  };
  if (ShowsProgress()) {
    auto start = std::chrono::steady_clock::now();
    launch.tick = [start, sweep = launch.tick, directory = claim->directory()] {
      sweep();
      auto seconds =
          std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start)
              .count();
      std::fputs(fmt::format("\rdeja: recording, {} s, {}\033[K", seconds,
                             HumanBytes(TraceBytes(directory)))
                     .c_str(),
                 stderr);
    };
  }
  return launch;
}

nlohmann::json ResultJson(const JobEnd& job, const std::string& trace,
                          const std::vector<SweptRank>& ranks) {
  nlohmann::json list = nlohmann::json::array();
  uint64_t bytes = 0;
  for (const SweptRank& rank : ranks) {
    bytes += rank.bytes;
    nlohmann::json one = {{"rank", rank.rank},
                          {"attempt", rank.attempt},
                          {"pid", rank.pid},
                          {"folder", rank.folder},
                          {"bytes", rank.bytes},
                          {"events", rank.events},
                          {"events_lost", rank.events_lost},
                          {"payloads_lost", rank.payloads_lost}};
    if (rank.fate.known)
      one["end"] = {{"exit_code", rank.fate.exit_code}, {"signal", rank.fate.signal}};
    if (rank.still_running) one["still_running"] = true;
    if (!rank.error.empty()) one["error"] = rank.error;
    list.push_back(one);
  }
  return {{"trace", trace}, {"exit_code", job.exit_code}, {"bytes", bytes}, {"ranks", list}};
}

// Relative if it is below the working directory: what a user would type.
std::string ShownPath(const std::string& path) {
  std::error_code error;
  fs::path relative = fs::proximate(path, error);
  return error || relative.native().rfind("..", 0) == 0 ? path : relative.string();
}

// How a rank ended, as `deja info` tells it.
std::string EndOf(const SweptRank& rank, Symbolizer& symbolizer) {
  auto reader = format::RankReader::Open(rank.folder);
  if (!reader) return DescribeEnd(rank.fate.exit_code, static_cast<int>(rank.fate.signal));
  return ReadRankSummary(**reader).HowItEnded(symbolizer);
}

// The rank that one would replay first: one that a signal ended, if there is one.
const SweptRank* FirstToReplay(const std::vector<SweptRank>& ranks) {
  const SweptRank* failed = nullptr;
  for (const SweptRank& rank : ranks) {
    if (!rank.fate.known || (rank.fate.signal == 0 && rank.fate.exit_code == 0)) continue;
    if (rank.fate.signal != 0) return &rank;
    if (failed == nullptr) failed = &rank;
  }
  return failed;
}

// Of one rank for all: they drop what they have about the same time.
void SayWhatIsKept(const std::vector<SweptRank>& ranks) {
  for (const SweptRank& rank : ranks) {
    auto reader = format::RankReader::Open(rank.folder);
    if (!reader) continue;
    const WindowSummary window = ReadWindowSummary(**reader);
    if (!window.drops()) continue;
    return Diagnose(fmt::format("rank {}: {}", rank.rank, window.Describe()));
  }
}

// What the recorder says is missing, once for all ranks that say it.
void SayWhatIsNotRecorded(const std::vector<SweptRank>& ranks) {
  std::map<std::string, std::vector<uint32_t>> who;  // by what
  for (const SweptRank& rank : ranks) {
    auto reader = format::RankReader::Open(rank.folder);
    if (!reader) continue;
    const auto cursor = (*reader)->Events();
    while (const format::Event* event =
               cursor->NextOf(format::KindBit(format::EventKind::kDegraded))) {
      const auto* degraded = event->As<format::Degraded>();
      if (degraded == nullptr || degraded->remark == 1) continue;
      if (degraded->events_lost + degraded->payloads_lost != 0)
        continue;  // `deja verify` tells them
      std::vector<uint32_t>& others = who[std::string(degraded->reason)];
      if (others.empty() || others.back() != rank.rank) others.push_back(rank.rank);
    }
  }
  for (const auto& [what, which] : who)
    Diagnose(fmt::format("not recorded: {} {}: {}", which.size() == 1 ? "rank" : "ranks",
                         fmt::join(which, ", "), what));
}

// What the program's files say of it: an NCCL of its own, no way for a library to come in.
void SayWhatHidesIt(const std::vector<std::string>& program) {
  std::vector<Finding> findings;
  CheckProgram({program, {}, {}}, FindPython(program), findings);
  for (const Finding& finding : findings)
    if (finding.severity == Severity::kProblem)
      Diagnose(fmt::format("{}; {}", finding.what, finding.fix));
}

void Summarise(const std::string& trace, const std::vector<SweptRank>& ranks,
               const SweptChildren& children, const std::vector<std::string>& program) {
  std::string shown = ShownPath(trace);
  if (ranks.empty()) {
    Diagnose(
        g_record_options.single
            ? "nothing was recorded: the command did not load Deja's library (is it statically "
              "linked, or set-user-id?)"
            : "nothing was recorded: no process of the job created an NCCL communicator, or a "
              "process group of PyTorch's, where Deja could see it and write it down; `deja record "
              "--single` records a command "
              "that makes none");
    SayWhatHidesIt(program);
    return;
  }
  uint64_t bytes = 0;
  for (const std::vector<std::string>* folders : {&children.kept, &children.before_forks})
    for (const std::string& folder : *folders) bytes += format::FolderBytes(folder);
  uint64_t lost = children.events_lost + children.payloads_lost;
  uint32_t world_size = 0;
  for (const SweptRank& rank : ranks) {
    bytes += rank.bytes;
    lost += rank.events_lost + rank.payloads_lost;
    world_size = std::max(world_size, rank.world_size);
  }
  std::string and_children;
  if (!children.kept.empty())
    and_children =
        fmt::format(" and {} child process{} of theirs", HumanCount(children.kept.size()),
                    children.kept.size() == 1 ? "" : "es");
  Diagnose(fmt::format("recorded {} rank{}{} in {} ({})", ranks.size(),
                       ranks.size() == 1 ? "" : "s", and_children, shown, HumanBytes(bytes)));
  for (const std::string& error : children.errors) Diagnose(error);
  if (children.still_running != 0)
    Diagnose(
        fmt::format("{} child processes are still running; when they have ended: deja recover {}",
                    children.still_running, shown));
  if (ranks.size() < world_size && world_size <= 4096)
    Diagnose(
        fmt::format("the job has {} ranks; the others made no communicator, or are recorded "
                    "elsewhere",
                    world_size));
  Symbolizer symbolizer;
  for (const SweptRank& rank : ranks) {
    std::string who = fmt::format("rank {}", rank.rank);
    if (rank.attempt > 0) who += fmt::format(", attempt {}", rank.attempt);
    bool clean = rank.fate.signal == 0 && rank.fate.exit_code == 0;
    if (rank.fate.known && !clean) Diagnose(fmt::format("{}: {}", who, EndOf(rank, symbolizer)));
    if (rank.still_running)
      Diagnose(fmt::format("{}: process {} is still running; when it has ended: deja recover {}",
                           who, rank.pid, shown));
    if (!rank.error.empty()) Diagnose(fmt::format("{}: {}", who, rank.error));
  }
  SayWhatIsKept(ranks);
  SayWhatIsNotRecorded(ranks);
  if (lost > 0)
    Diagnose(fmt::format("{} events or payloads are missing; `deja verify {}` says which",
                         HumanCount(lost), shown));
  const SweptRank* failed = g_record_options.level == "full" ? FirstToReplay(ranks) : nullptr;
  Diagnose(fmt::format("next: deja info {}", shown));
  if (failed != nullptr)
    Diagnose(fmt::format("      deja replay {} --rank {} --gdb", shown, failed->rank));
}

int RunRecord(const Context& context) {
  if (int usage = CheckUsage(context); usage != kExitOk) return usage;
  auto library = FindLibrary("libdeja_record.so");
  if (!library) return FailWith(library.error());
  auto python = FindPythonDirectory();
  if (!python) return FailWith(python.error());
  std::string out =
      g_record_options.out.empty() ? DefaultOut(context.program[0]) : g_record_options.out;
  std::error_code error;
  out = fs::absolute(out, error).lexically_normal().string();
  while (out.size() > 1 && out.back() == '/') out.pop_back();

  IgnoreFileSizeSignal();
  auto claim = TraceClaim::Make(out, g_record_options.force);
  if (!claim && claim.error().code != ErrorCode::kIo) return FailWith(claim.error());
  // The job comes first: a disk that refuses is no reason not to run it.
  if (!claim) Diagnose(fmt::format("the job is not recorded: {}", claim.error().message));
  // A home that cannot be written to is no reason to say anything: a replay asks then.
  if (claim) (void)TrustStore().Add(claim->directory(), Trust::kOwn);
  std::optional<WindowSweep> window;
  if (claim)
    window.emplace(claim->directory(), claim->job_id(), g_record_options.keep_steps,
                   g_record_options.keep_seconds);
  LaunchOptions launch = MakeLaunch(context, claim ? &*claim : nullptr, *library, *python,
                                    window ? &*window : nullptr);
  if (g_record_options.loopback) {
    auto loopback = FindLoopbackDirectory();
    if (!loopback) return FailWith(loopback.error());
    launch.loopback_directory = *loopback;
  }
  JobEnd job = RunJob(launch);
  if (ShowsProgress()) std::fputs("\r\033[K", stderr);
  if (!job.start_error.empty()) Diagnose(job.start_error);
  if (!claim) {
    if (context.json) PrintJson(ResultJson(job, "", {}));
    return job.exit_code;
  }

  const bool was_removed = !fs::exists(claim->directory(), error);
  bool is_last = claim->IsLast();
  if (g_record_options.single && is_last) KeepLastImages(claim->directory());
  std::vector<SweptRank> ranks = SweepTrace(claim->directory(), job.ends, is_last);
  SweptChildren children;
  if (is_last) {
    children = SweepChildren(claim->directory(), job.ends);
    window->Finish();
    for (SweptRank& rank : ranks) rank.bytes = format::FolderBytes(rank.folder);
    if (auto removed = format::RemoveOrphanTails(claim->directory(), claim->job_id()); !removed)
      Diagnose(removed.error().message);
    format::RemoveMarks(claim->directory());
    claim->RemoveIfEmpty();
  }
  if (context.json) PrintJson(ResultJson(job, ranks.empty() ? "" : claim->directory(), ranks));
  // Of several that record one job only the last speaks.
  if (is_last && was_removed && ranks.empty())
    Diagnose(fmt::format("nothing is left of the recording: {} was removed while the job ran",
                         ShownPath(claim->directory())));
  else if (is_last && job.start_error.empty())
    Summarise(claim->directory(), ranks, children, context.program);
  return job.exit_code;
}

}  // namespace

extern const Command kRecordCommand;
const Command kRecordCommand = {
    "record",
    "Run a job and record every rank of it",
    "  deja record --loopback -n 4 --out run.deja -- build/examples/digits/digits_train\n"
    "  deja record --out run.deja -- torchrun --nproc-per-node 8 train.py\n"
    "  mpirun -n 8 deja record --out run.deja -- ./prog\n"
    "  deja record --keep-steps 20 --hang-after 300 -- torchrun --nproc-per-node 8 train.py\n"
    "  deja record --checkpoint-every 100 -- torchrun train.py    deja replay --from-step 4800\n"
    "  deja record --level digest -- bash job.sh\n"
    "  deja record --single --out run.deja -- python3 script.py    a program without NCCL\n"
    "  deja record --inputs full --out run.deja -- ./train    a replay needs no data set\n"
    "  deja record --inputs-include '/opt/data/*' --inputs-exclude '*.log' -- ./train\n"
    "The exit status is the job's own: of the command, or of the rank that failed first; 128 + N "
    "for "
    "signal N.\n",
    true,
    AddRecordOptions,
    RunRecord,
};

}  // namespace deja::cli

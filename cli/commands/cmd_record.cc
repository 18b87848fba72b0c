// deja record: run a job and record every rank of it.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/fence/trust_store.h"
#include "cli/help/option_list.h"
#include "cli/install_layout.h"
#include "cli/output.h"
#include "cli/own_variables.h"
#include "cli/record/examples_here.h"
#include "cli/record/launcher.h"
#include "cli/record/record_summary.h"
#include "cli/record/trace_claim.h"
#include "cli/record/trace_sweep.h"
#include "cli/record/window_sweep.h"
#include "cli/status_line.h"
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
  uint64_t state_digests = 0;
  bool no_evidence = false;
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
  app.add_option("--checkpoint-every", g_record_options.checkpoint_every,
                 "Take a checkpoint of the state that the program has registered (deja.h) every N "
                 "steps; a replay can start from one, and a window of steps reaches back to one")
      ->check(CLI::Range(1, 1000000000));
  app.add_option(
         "--state-digests", g_record_options.state_digests,
         "Keep digests of parameters, gradients and the optimizer's state of PyTorch every N "
         "steps of an optimizer, for deja check; default: the first steps, then ever fewer")
      ->check(CLI::Range(1, 1000000000));
  app.add_flag("--no-evidence", g_record_options.no_evidence,
               "Leave out what deja check compares of PyTorch besides calls: digests of parameters "
               "and batches, names of operands, early changes");
  CLI::Option* steps =
      app.add_option(
             "--keep-steps", g_record_options.keep_steps,
             "Keep the contents of tensors of the last K steps only, and of the time before "
             "the first step")
          ->check(CLI::Range(1, 1000000));
  CLI::Option* bytes =
      app.add_option(
             "--keep-bytes", g_record_options.keep_bytes,
             "The same for a program without steps: keep the last bytes of each rank, as they "
             "are on the disk (1048576, or 2GB). All child processes together keep at most as "
             "much")
          ->transform(CLI::AsSizeValue(false))
          ->check(CLI::Range(uint64_t{1} << 20, uint64_t{1} << 50));
  CLI::Option* seconds = app.add_option("--keep-seconds", g_record_options.keep_seconds,
                                        "The same by time: those of the last seconds")
                             ->check(CLI::Range(1, 1000000000));
  steps->excludes(bytes)->excludes(seconds);
  bytes->excludes(seconds);
  app.add_option("--disk-budget", g_record_options.disk_budget,
                 "Quota of the trace on the disk of each machine, for all processes together; "
                 "beyond it the oldest contents of tensors are dropped (default: a quarter of the "
                 "free space, 256 MiB at least; 0: no limit)")
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
                 "Add this to the nice value of the threads that compress and write the trace")
      ->check(CLI::Range(0, 19))
      ->capture_default_str();
  app.add_flag("--background-idle-io", g_record_options.background_idle_io,
               "Give those threads the I/O priority idle: all other processes use the disk first");
  app.add_option("--background-cpus", g_record_options.background_cpus,
                 "CPUs for those threads, e.g. 0-3,8 (default: those of the program)")
      ->check([](const std::string& list) {
        return format::ParseCpuList(list).empty() ? "not a list of CPUs such as 0-3,8"
                                                  : std::string();
      });
}

void GroupRecordOptions(CLI::App& app) {
  SetGroups(
      app,
      {{"Where and whom", {"--out", "--force", "--single", "--loopback", "--ranks", "--grace"}},
       {"What is recorded",
        {"--level", "--inputs", "--inputs-include", "--inputs-exclude", "--threads",
         "--checkpoint-every", "--state-digests", "--no-evidence", "--cuda-graphs",
         "--fill-memory"}},
       {"Secrets", {"--keep-env", "--mask"}},
       {"How long it is kept",
        {"--keep-steps", "--keep-bytes", "--keep-seconds", "--disk-budget", "--hang-after"}},
       {"Memory, processors and disk",
        {"--buffer", "--delta-memory", "--codec", "--device-digests", "--on-pressure",
         "--redundancy", "--background-nice", "--background-idle-io", "--background-cpus"}}});
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
               "Record the command itself as rank 0 of 1, with or without a communicator. A "
               "wrapper that execs another program hands this over to it");
  app.add_flag("--loopback", g_record_options.loopback,
               "Start the ranks here, with NCCL in host memory instead of the real one");
  app.add_flag("--fill-memory", g_record_options.fill_memory,
               "Fill what malloc of the C library returns with zeros (by GLIBC_TUNABLES), also "
               "in a replay. For programs that read memory before they write it, and diverge by "
               "that");
  app.add_option("-n,--ranks", g_record_options.ranks, "With --loopback: number of ranks")
      ->check(CLI::Range(1, 4096));
  app.add_option("--grace", g_record_options.grace,
                 "With --loopback: seconds between the failure of one rank and the end of the "
                 "others")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--buffer", g_record_options.buffer,
                 "Memory of each rank for payloads that are not written yet (bytes, or 256MB)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{1} << 20, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--delta-memory", g_record_options.delta_memory,
                 "Memory of each rank for the tensors of the step before, to store only their "
                 "changes where that is less; 0: store each tensor whole. It holds named tensors, "
                 "results of the same collective in each step, and checkpoints")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option(
         "--codec", g_record_options.codec,
         "Compression of tensors. small: as small as recording can make it; fast: two thirds of "
         "the processor time, no differences to the step before, up to a sixth larger")
      ->check(CLI::IsMember({"small", "fast"}))
      ->capture_default_str();
  app.add_option("--cuda-graphs", g_record_options.cuda_graphs,
                 "Calls that are captured into CUDA graphs. record: add nodes to the graphs that "
                 "record what the calls read and write at each launch; leave: add nothing, for "
                 "graphs that cannot have host nodes (launched from the device). A replay then "
                 "ends at the first of these calls")
      ->check(CLI::IsMember({"record", "leave"}))
      ->capture_default_str();
  app.add_option("--device-digests", g_record_options.device_digests,
                 "Where digests of device buffers are made, if their bytes are not kept. device: "
                 "by a kernel, without copies; host: of copies, if the driver refuses Deja's "
                 "kernels. Hashes, counts and extremes are the same")
      ->check(CLI::IsMember({"device", "host"}))
      ->capture_default_str();
  app.add_option("--on-pressure", g_record_options.on_pressure,
                 "When that memory is full: block the program until there is room, or drop-payload")
      ->check(CLI::IsMember({"block", "drop-payload"}))
      ->capture_default_str();
  app.add_option("--redundancy", g_record_options.redundancy,
                 "Keep N copies per host of results that several ranks share, e.g. of an "
                 "all-reduce; 0: every rank keeps its own")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  AddWindowOptions(app);
  AddBackgroundOptions(app);
  app.add_option("--inputs", g_record_options.inputs,
                 "What to keep of the files that the program reads. off: nothing; digest: hashes, "
                 "so that a replay notices a file that differs; full: also the bytes, so that a "
                 "replay needs none of the files. Left out: /usr, /lib, /etc, /opt, /proc, /sys, "
                 "/dev, /run, shared libraries, Python's modules and site-packages, the program "
                 "itself, files that the run writes")
      ->check(CLI::IsMember({"off", "digest", "full"}))
      ->capture_default_str();
  app.add_option("--inputs-include", g_record_options.inputs_include,
                 "Files that are inputs although the default leaves them out: absolute paths with "
                 "* and ?, e.g. --inputs-include '/opt/data/*' (repeatable)")
      ->allow_extra_args(false);
  app.add_option("--inputs-exclude", g_record_options.inputs_exclude,
                 "Files that are no inputs, whatever the other options say, e.g. --inputs-exclude "
                 "'*/cache/*' (repeatable)")
      ->allow_extra_args(false);
  app.add_option("--threads", g_record_options.threads,
                 "order: record the order in which the threads of each process take locks, and "
                 "replay it; off: do not. For programs whose result depends on that order")
      ->check(CLI::IsMember({"off", "order"}))
      ->capture_default_str();
  app.add_option("--keep-env", g_record_options.keep_env,
                 "Store the values of these variables, options and headers even if they look like "
                 "a secret: names with * and ?, e.g. --keep-env 'HF_*' (repeatable)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--mask", g_record_options.mask,
                 "Mask the values of these, too, as those that look like a token, a key or a "
                 "password, e.g. --mask 'MY_*_ID' (repeatable)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--force", g_record_options.force,
               "Replace the trace that --out names, if there is one");
  SetPaths(app, {"--out"});
  GroupRecordOptions(app);
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
    Diagnose("recording: no program is given; write it after `--`, such as:");
    for (const std::string& line : ExamplesHere()) Diagnose(line);
    return kExitUsage;
  }
  if (g_record_options.loopback != (g_record_options.ranks > 0)) {
    Diagnose(g_record_options.loopback
                 ? "recording: --loopback: the number of ranks is missing; give -n N"
                 : "recording: -n: it starts ranks with --loopback only; give the job's own "
                   "launcher: deja record -- torchrun --nproc-per-node 4 train.py");
    return kExitUsage;
  }
  return kExitOk;
}

// Overlong lines do not help on a terminal that the job writes to as well. Progress is shown only
// where the job's own output goes elsewhere.
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
  if (g_record_options.single) launch.pid_variable = env::kSingle.name;
  launch.environment = {
      Named(env::kOut, claim->directory()),
      Named(env::kJobId, claim->job_id()),
      Named(env::kLevel, g_record_options.level),
      Named(env::kBuffer, g_record_options.buffer),
      Named(env::kDeltaMemory, g_record_options.delta_memory),
      Named(env::kCodec, g_record_options.codec),
      Named(env::kCudaGraphs, g_record_options.cuda_graphs),
      Named(env::kDeviceDigests, g_record_options.device_digests),
      Named(env::kOnPressure, g_record_options.on_pressure),
      Named(env::kRedundancy, g_record_options.redundancy),
      Named(env::kKeepSteps, g_record_options.keep_steps),
      Named(env::kCheckpointEvery, g_record_options.checkpoint_every),
      Named(env::kStateDigests, g_record_options.state_digests),
      Named(env::kNoEvidence, g_record_options.no_evidence),
      Named(env::kKeepBytes, g_record_options.keep_bytes),
      Named(env::kKeepSeconds, g_record_options.keep_seconds),
      Named(env::kDiskBudget, DiskBudget(claim->directory())),
      Named(env::kHangAfter, g_record_options.hang_after),
      Named(env::kBackgroundNice, g_record_options.background_nice),
      Named(env::kBackgroundIdleIo, g_record_options.background_idle_io),
      Named(env::kBackgroundCpus, g_record_options.background_cpus),
      Named(env::kInputs, g_record_options.inputs),
      Named(env::kThreads, g_record_options.threads),
  };
  if (!g_record_options.inputs_include.empty())
    launch.environment.push_back(Named(env::kInputsInclude, g_record_options.inputs_include));
  if (!g_record_options.inputs_exclude.empty())
    launch.environment.push_back(Named(env::kInputsExclude, g_record_options.inputs_exclude));
  if (!g_record_options.keep_env.empty())
    launch.environment.push_back(Named(env::kKeepEnv, g_record_options.keep_env));
  if (!g_record_options.mask.empty())
    launch.environment.push_back(Named(env::kMask, g_record_options.mask));
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
      ShowStatusLine(
          fmt::format("deja: recording, {} s, {}", seconds, HumanBytes(TraceBytes(directory))));
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
  constexpr uint64_t kDay = 86400;
  format::RemoveOldJobMemory("/dev/shm", kDay);
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
  HideStatusLine();
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
  // If several commands record one job, only the last reports.
  if (is_last && was_removed && ranks.empty())
    Diagnose(fmt::format("nothing is left of the recording: {} was removed while the job ran",
                         ShownPath(claim->directory())));
  else if (is_last && job.start_error.empty())
    SayWhatWasRecorded({claim->directory(), context.program, g_record_options.single,
                        g_record_options.level == "full"},
                       ranks, children);
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

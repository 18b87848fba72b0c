// deja serve: what a recorded rank was given by its process groups, for a program that asks.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/fence/trust_store.h"
#include "cli/help/option_list.h"
#include "cli/open_trace.h"
#include "cli/output.h"
#include "cli/serve/operation_server.h"
#include "cli/serve/recorded_operations.h"
#include "cli/summaries/trace_damage.h"
#include "format/trace/trace.h"

namespace deja::cli {
namespace {

struct ServeOptions {
  std::string trace;
  uint32_t rank = 0;
  bool trust = false;
};
ServeOptions g_serve_options;

// More than the tensors of one operation have.
constexpr uint64_t kMostInputBytes = uint64_t{64} << 30;
constexpr size_t kMostWords = size_t{1} << 20;

void AddServeOptions(CLI::App& app) {
  AddTraceArgument(app, "TRACE", g_serve_options.trace);
  app.add_option("--rank", g_serve_options.rank, "The rank (default 0)");
  app.add_flag("--trust", g_serve_options.trust,
               "Serve a trace that this user has not recorded or packed here. PyTorch unpickles "
               "objects that it is given, so such a trace can run code in the program");
}

// A line of standard input without its end; false: there is none, or it is longer than a request.
bool ReadRequest(std::string& line) {
  line.clear();
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c == '\n') return true;
    if (line.size() == kMostWords) return false;
    line += static_cast<char>(c);
  }
  return false;
}

bool Send(nlohmann::json words, const std::vector<std::byte>& bytes) {
  words["bytes"] = bytes.size();
  PrintJson(words, -1);
  return std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() &&
         std::fflush(stdout) == 0;
}

// Until the program closes its end.
int Converse(OperationServer& server) {
  std::string line;
  std::vector<std::byte> input;
  while (ReadRequest(line)) {
    const nlohmann::json words = nlohmann::json::parse(line, nullptr, false);
    const bool has_bytes = words.is_object() && words.contains("bytes");
    const uint64_t size =
        has_bytes && words["bytes"].is_number_unsigned() ? words["bytes"].get<uint64_t>() : 0;
    if (!words.is_object() || size > kMostInputBytes) {
      Diagnose("serving: standard input: this is no request of deja.torch.TracePG");
      return kExitUsage;
    }
    input.resize(size);
    if (std::fread(input.data(), 1, size, stdin) != size) break;
    const ServedAnswer answer = server.Answer(words, input);
    if (!Send(answer.words, answer.bytes)) break;
  }
  return kExitOk;
}

// No fence is around the program. So to have agreed to a replay is not enough.
bool IsTrusted() {
  return g_serve_options.trust || TrustStore().Of(g_serve_options.trace) == Trust::kOwn;
}

int RunServe(const Context& /*context*/) {
  if (!IsTrusted()) {
    Diagnose(
        fmt::format("serving: {}: this user has not recorded or packed it here, and PyTorch "
                    "unpickles objects that it is given; give --trust, or trust=True to "
                    "deja.torch.TracePG",
                    g_serve_options.trace));
    return kExitUsage;
  }
  auto trace = OpenTrace(g_serve_options.trace);
  if (!trace) return FailWith(trace.error());
  const auto reader = (*trace)->Rank(g_serve_options.rank);
  if (!reader) return FailWith(reader.error());
  const std::string damage = FindEventDamage(**reader);
  if (!damage.empty()) {
    SayDamaged(fmt::format("rank {}", g_serve_options.rank), damage);
    return kExitDataLoss;
  }
  const RecordedOperations recorded(**reader);
  const RankSummary summary = ReadRankSummary(**reader);
  OperationServer server(**reader, recorded, summary);
  if (!Send(server.Greeting(), {})) return kExitFailure;
  return Converse(server);
}

}  // namespace

extern const Command kServeCommand;
const Command kServeCommand = {
    "serve",
    "Give a program on standard input what a recorded rank was given by its process groups",
    "  deja serve run.deja --rank 2    started by deja.torch.TracePG (docs/PYTORCH.md)\n",
    false,
    AddServeOptions,
    RunServe,
};

}  // namespace deja::cli

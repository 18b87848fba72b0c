// Exports for scripts: JSON and CSV.
#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/check/check_report.h"
#include "cli/export/formats.h"
#include "common/text/plain_text.h"
#include "digest/elements.h"

namespace deja::cli {
namespace {

using nlohmann::json;

std::string JsonText(const json& value) {
  return PlainJson(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

// "float32"; empty: the operation has none.
std::string TypeName(const check::Signature& signature) {
  return signature.dtype == check::Signature::kNoType ? "" : digest::DTypeText(signature.dtype);
}

const char* StateName(const check::Part& part) {
  if (part.call->Is(check::kFailed)) return "failed";
  return part.is_open ? "open" : "done";
}

// Each site's places as the end of a part's text; empty: it has none.
std::vector<std::string> StackTexts(const check::Job& job) {
  std::vector<std::string> texts;
  for (const auto& site : job.sites) {
    json stack = json::array();
    for (const check::Place& place : site)
      stack.push_back({{"file", place.file}, {"line", place.line}, {"function", place.function}});
    texts.push_back(stack.empty() ? "" : ",\"stack\":" + JsonText(stack));
  }
  return texts;
}

// Adds a part to `text`. There may be millions: values that are known to need no quoting are
// written as they are.
void AddPart(const ExportSource& source, const std::vector<std::string>& stacks,
             const check::Part& part, bool is_transfer, std::string& text) {
  const check::Call& call = *part.call;
  const check::Signature& signature = source.SignatureOf(part);
  auto end = std::back_inserter(text);
  fmt::format_to(end,
                 R"({{"rank":{},"comm":{},"seq":{},"begin_ns":{},"end_ns":{},"state":"{}",)"
                 R"("operation":"{}","thread":{},"nan_in":{},"nan_out":{})",
                 source.job.ranks[part.rank].rank, part.comm, call.seq, part.begin_ns, part.end_ns,
                 StateName(part), check::NameOf(signature.operation), call.thread,
                 call.Is(check::kNanIn), call.Is(check::kNanOut));
  if (signature.dtype != check::Signature::kNoType)
    fmt::format_to(end, R"(,"dtype":"{}")", TypeName(signature));
  if (signature.count != check::Signature::kAnyCount)
    fmt::format_to(end, R"(,"count":{})", signature.count);
  if (signature.root != check::Signature::kNone)
    fmt::format_to(end, R"(,"root":{})", signature.root);
  if (call.step != check::kNoStep) fmt::format_to(end, R"(,"step":{})", call.step);
  if (call.input != 0) fmt::format_to(end, R"(,"input_digest":"{:016x}")", call.input);
  if (call.output != 0) fmt::format_to(end, R"(,"output_digest":"{:016x}")", call.output);
  if (is_transfer)
    fmt::format_to(end, R"(,"peer":{})", static_cast<const check::Transfer&>(call).peer);
  text += stacks[call.site];
  text += '}';
}

json RankJson(const ExportSource& source, size_t index) {
  const check::RankSummary& rank = source.job.ranks[index];
  const RankFacts& facts = source.ranks[index];
  json value = {{"rank", rank.rank},
                {"host", facts.host},
                {"pid", facts.pid},
                {"end", rank.end.Describe()},
                {"ended_well", rank.end.Well()},
                {"last_ns", rank.last_time_ns},
                {"events", facts.events},
                {"bytes", facts.file_bytes},
                {"payload_bytes", facts.payload_bytes}};
  if (!source.has_findings) return value;
  json& steps = value["steps"] = json::array();
  for (const auto& [step, begin_ns] : facts.steps)
    steps.push_back({{"step", step}, {"begin_ns", begin_ns}});
  return value;
}

// A cell, quoted where it must be. Spreadsheets compute a cell that begins like a formula: such
// text gets an apostrophe in front.
std::string Cell(const std::string& text) {
  std::string cell = PlainText(text);
  if (cell.find_first_of("=+-@") == 0) cell.insert(0, "'");
  if (cell.find_first_of(",\"\n\r") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// A number, or nothing for what stands for none.
template <typename T>
std::string Unless(T value, T none) {
  return value == none ? "" : fmt::format("{}", value);
}

}  // namespace

Status ExportJson(const ExportSource& source, const std::string& path) {
  DEJA_ASSIGN_OR_RETURN(auto file, ExportFile::Create(path));
  const check::Job& job = source.job;
  file.Write(fmt::format("{{\"made_by\":{},\"trace\":{},\n\"ranks\":[",
                         JsonText(json(source.made_by)), JsonText(json(source.trace))));
  for (size_t r = 0; r < job.ranks.size(); ++r)
    file.Write((r == 0 ? "\n" : ",\n") + JsonText(RankJson(source, r)));
  file.Write("],\n\"communicators\":[");
  for (size_t c = 0; c < job.communicators.size(); ++c) {
    const check::Communicator& communicator = job.communicators[c];
    file.Write((c == 0 ? "\n" : ",\n") + JsonText({{"name", job.NameOf(communicator)},
                                                   {"given_name", communicator.name},
                                                   {"size", communicator.nranks},
                                                   {"ranks", job.RanksOf(communicator)}}));
  }
  if (source.has_operations) file.Write("],\n\"operations\":[");
  const std::vector<std::string> stacks = StackTexts(job);
  std::string line;
  for (size_t i = 0; i < source.operations.size(); ++i) {
    const check::JoinedOperation& one = source.operations[i];
    line = fmt::format(R"({}{{"communicator":{},"number":{},"agrees":{},"parts":[)",
                       i == 0 ? "\n" : ",\n", one.communicator, one.number, one.agrees);
    for (size_t p = 0; p < one.parts.size(); ++p) {
      if (p != 0) line += ',';
      AddPart(source, stacks, one.parts[p], one.is_transfer, line);
    }
    file.Write(line + "]}");
  }
  // Readers of very many operations find the list's end without parsing.
  file.Write(source.has_operations ? "\n]" : "]");
  if (source.has_findings)
    file.Write(",\n\"check\":" +
               JsonText(CheckJson(source.report, {source.trace, job.ranks.size()})));
  file.Write("}\n");
  return file.Finish();
}

Status ExportCsv(const ExportSource& source, const std::string& path) {
  DEJA_ASSIGN_OR_RETURN(auto file, ExportFile::Create(path));
  file.Write(
      "rank,communicator,comm,number,seq,operation,dtype,count,root,peer,step,begin_ns,end_ns,"
      "met_ns,state,last_to_enter,nan_in,nan_out,input_digest,output_digest,site,"
      "communicator_name\n");
  const auto digest = [](uint64_t value) {
    return value == 0 ? "" : fmt::format("{:016x}", value);
  };
  for (const check::JoinedOperation& one : source.operations) {
    const std::string name = Cell(source.CommName(one.communicator));
    const check::Part* last = &one.parts[one.Last()];
    for (const check::Part& part : one.parts) {
      const check::Call& call = *part.call;
      const check::Signature& signature = source.SignatureOf(part);
      const int64_t peer = one.is_transfer ? static_cast<const check::Transfer&>(call).peer : -1;
      file.Write(
          fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                      source.job.ranks[part.rank].rank, one.communicator, part.comm, one.number,
                      call.seq, check::NameOf(signature.operation), TypeName(signature),
                      Unless(signature.count, check::Signature::kAnyCount),
                      Unless(signature.root, check::Signature::kNone), Unless(peer, int64_t{-1}),
                      Unless(call.step, check::kNoStep), part.begin_ns, part.end_ns, one.met_ns,
                      StateName(part), &part == last ? 1 : 0, call.Is(check::kNanIn) ? 1 : 0,
                      call.Is(check::kNanOut) ? 1 : 0, digest(call.input), digest(call.output),
                      Cell(check::Describe(source.job.sites[call.site])), name));
    }
  }
  return file.Finish();
}

}  // namespace deja::cli

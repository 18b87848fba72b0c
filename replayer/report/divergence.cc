#include "replayer/report/divergence.h"

#include <cstdio>

#include "digest/digest.h"

namespace deja::replayer {
namespace {

std::string HashText(const Hash128& hash) {
  char text[17];
  for (int i = 0; i < 8; ++i) std::snprintf(text + 2 * i, 3, "%02x", hash.bytes[i]);
  return text;
}

std::string DTypeText(uint32_t dtype) {
  const char* name = digest::DTypeName(dtype);
  return name != nullptr ? name : "type " + std::to_string(dtype);
}

std::string StatsText(const format::TensorStats& stats, const Hash128& hash) {
  std::string text = "digest " + HashText(hash);
  text += ", min " + digest::DoubleText(stats.min) + ", max " + digest::DoubleText(stats.max) +
          ", sum " + digest::DoubleText(stats.sum);
  if (stats.nan_count != 0) text += ", " + std::to_string(stats.nan_count) + " NaN";
  if (stats.inf_count != 0) text += ", " + std::to_string(stats.inf_count) + " Inf";
  return text;
}

void WriteStats(JsonLine& line, const char* key, const format::TensorStats& stats) {
  line.OpenObject(key);
  line.Add("nan", stats.nan_count);
  line.Add("inf", stats.inf_count);
  line.AddDouble("min", stats.min);
  line.AddDouble("max", stats.max);
  line.AddDouble("sum", stats.sum);
  line.AddDouble("sum_squares", stats.sum_squares);
  line.Close();
}

void WriteStack(JsonLine& line, const char* key, const std::vector<StackLine>& stack) {
  line.OpenArray(key);
  for (const StackLine& frame : stack) {
    line.OpenObject();
    line.Add("module", frame.module);
    line.AddHex("build_id", reinterpret_cast<const uint8_t*>(frame.build_id.data()),
                frame.build_id.size());
    line.Add("offset", frame.offset);
    line.Close();
  }
  line.Close();
}

// Of kinds that are about a tensor; null for others.
const char* TensorWord(DivergenceKind kind) {
  switch (kind) {
    case DivergenceKind::kInput:
      return "input ";
    case DivergenceKind::kSnapshot:
      return "snapshot ";
    case DivergenceKind::kResult:
      return "result ";
    default:
      return nullptr;
  }
}

}  // namespace

const char* KindName(DivergenceKind kind) {
  switch (kind) {
    case DivergenceKind::kCall:
      return "call";
    case DivergenceKind::kArguments:
      return "arguments";
    case DivergenceKind::kInput:
      return "input";
    case DivergenceKind::kExtraCall:
      return "extra-call";
    case DivergenceKind::kEntropy:
      return "entropy";
    case DivergenceKind::kSnapshot:
      return "snapshot";
    case DivergenceKind::kFile:
      return "file";
    case DivergenceKind::kSent:
      return "sent";
    case DivergenceKind::kEnd:
      return "end";
    case DivergenceKind::kResult:
      return "result";
  }
  return "unknown";
}

std::string Divergence::Describe() const {
  std::string text;
  if (has_step) text += "step " + std::to_string(step) + ", ";
  if (!api.empty()) text += api;
  if (comm_seq != 0) text += " #" + std::to_string(comm_seq);
  if (comm != 0) {
    text += " of comm " + std::to_string(comm - 1);
    if (comm_nranks != 0)
      text += " (rank " + std::to_string(comm_rank) + " of " + std::to_string(comm_nranks) + ")";
  }
  if (launch != 0) text += ", launch " + std::to_string(launch) + " of its graph";
  if (!thread.empty() && thread != "0") text += ", thread " + thread;
  text += ": ";
  const char* differs = TensorWord(kind);
  if (differs == nullptr || !what.empty()) return text + what;
  text += differs;
  text += tensor + " differs from the recording";
  if (element.found) {
    const bool raw = dtype == format::kRawBytes;
    text += raw ? " at byte " : " at element ";
    text += std::to_string(element.first) + " of " + std::to_string(count);
    if (!raw) text += " (" + DTypeText(dtype) + ")";
    text += ": recorded " + element.a + ", live " + element.b;
    if (!raw && element.ulps != UINT64_MAX)
      text += ", " + std::to_string(element.ulps) + " ULP apart";
    if (element.different > 1)
      text += "; " + std::to_string(element.different) + (raw ? " bytes" : " elements") + " differ";
    return text;
  }
  text += " (" + std::to_string(count) + " x " + DTypeText(dtype) + "): recorded " +
          StatsText(recorded_stats, recorded_hash) + "; live " + StatsText(live_stats, live_hash) +
          "; the recorded bytes were not kept, so the first element that differs is not known";
  return text;
}

void Divergence::WriteTo(JsonLine& line) const {
  line.Add("divergence", KindName(kind));
  line.Add("text", Describe());
  line.Add("thread", thread);
  line.Add("api", api);
  if (has_step) line.Add("step", step);
  if (comm != 0) {
    line.Add("comm", comm - 1);
    line.Add("comm_seq", comm_seq);
  }
  if (!tensor.empty()) {
    line.Add("tensor", tensor);
    line.Add("dtype", DTypeText(dtype));
    line.Add("count", count);
    line.AddHex("recorded_hash", recorded_hash.bytes.data(), recorded_hash.bytes.size());
    line.AddHex("live_hash", live_hash.bytes.data(), live_hash.bytes.size());
    WriteStats(line, "recorded_stats", recorded_stats);
    WriteStats(line, "live_stats", live_stats);
  }
  if (element.found) {
    line.OpenObject("element");
    line.Add("index", element.first);
    line.Add("recorded", element.a);
    line.Add("live", element.b);
    if (element.ulps != UINT64_MAX) line.Add("ulps", element.ulps);
    line.Add("different", element.different);
    line.Close();
  }
  WriteStack(line, "recorded_stack", recorded_stack);
  WriteStack(line, "live_stack", live_stack);
}

}  // namespace deja::replayer

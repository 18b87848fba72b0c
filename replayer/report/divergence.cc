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

std::string StatsText(const format::TensorStats& stats, const Hash128& hash) {
  std::string text = "digest " + HashText(hash);
  text += ", min " + digest::DoubleText(stats.min) + ", max " + digest::DoubleText(stats.max) +
          ", sum " + digest::DoubleText(stats.sum);
  if (stats.nan_count != 0) text += ", " + std::to_string(stats.nan_count) + " NaN";
  if (stats.inf_count != 0) text += ", " + std::to_string(stats.inf_count) + " Inf";
  return text;
}

StatsPart StatsOf(const format::TensorStats& stats) {
  return {.nan = stats.nan_count,
          .inf = stats.inf_count,
          .min = {stats.min},
          .max = {stats.max},
          .sum = {stats.sum},
          .sum_squares = {stats.sum_squares}};
}

std::string_view BytesOf(const Hash128& hash) {
  return {reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size()};
}

std::vector<FramePart> FramesOf(const std::vector<StackLine>& stack) {
  std::vector<FramePart> frames;
  frames.reserve(stack.size());
  for (const StackLine& frame : stack)
    frames.push_back({frame.module, {frame.build_id}, frame.offset});
  return frames;
}

// The word for kinds that are about a tensor; null for others.
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
    if (!raw) text += " (" + digest::DTypeText(dtype) + ")";
    text += ": recorded " + element.a + ", live " + element.b;
    if (!raw && element.ulps != UINT64_MAX)
      text += ", " + std::to_string(element.ulps) + " ULP apart";
    if (element.different > 1)
      text += "; " + std::to_string(element.different) + (raw ? " bytes" : " elements") + " differ";
    return text;
  }
  text += " (" + std::to_string(count) + " x " + digest::DTypeText(dtype) + "): recorded " +
          StatsText(recorded_stats, recorded_hash) + "; live " + StatsText(live_stats, live_hash) +
          "; the recorded bytes were not kept, so the first element that differs is not known";
  return text;
}

void Divergence::WriteTo(const Report& report) const {
  const std::string described = Describe();
  const std::string type = digest::DTypeText(dtype);
  const std::vector<FramePart> recorded = FramesOf(recorded_stack);
  const std::vector<FramePart> replayed = FramesOf(live_stack);
  DivergenceLine line;
  line.divergence = KindName(kind);
  line.text = described;
  line.thread = thread;
  line.api = api;
  if (has_step) line.step = step;
  if (comm != 0) {
    line.comm = comm - 1;
    line.comm_seq = comm_seq;
  }
  if (!tensor.empty()) {
    line.tensor = tensor;
    line.dtype = type;
    line.count = count;
    line.recorded_hash = {BytesOf(recorded_hash)};
    line.live_hash = {BytesOf(live_hash)};
    line.recorded_stats = StatsOf(recorded_stats);
    line.live_stats = StatsOf(live_stats);
  }
  if (element.found) {
    line.element = ElementPart{.index = element.first,
                               .recorded = element.a,
                               .live = element.b,
                               .ulps = std::nullopt,
                               .different = element.different};
    if (element.ulps != UINT64_MAX) line.element->ulps = element.ulps;
  }
  line.recorded_stack = recorded;
  line.live_stack = replayed;
  report.Write(line);
}

}  // namespace deja::replayer

#include "replayer/divergence.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "preload/digest.h"

namespace deja::replayer {
namespace {

std::string HashText(const Hash128& hash) {
  char text[17];
  for (int i = 0; i < 8; ++i) std::snprintf(text + 2 * i, 3, "%02x", hash.bytes[i]);
  return text;
}

// The shortest text that gives the same double back.
std::string DoubleText(double value) {
  if (std::isnan(value)) return "nan";
  char text[40];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc() ? std::string(text, end) : "?";
}

std::string FloatText(float value) {
  if (std::isnan(value)) return "nan";
  char text[40];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc() ? std::string(text, end) : "?";
}

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::string DTypeText(uint32_t dtype) {
  const char* name = preload::DTypeName(dtype);
  return name != nullptr ? name : "type " + std::to_string(dtype);
}

std::string StatsText(const format::TensorStats& stats, const Hash128& hash) {
  std::string text = "digest " + HashText(hash);
  text += ", min " + DoubleText(stats.min) + ", max " + DoubleText(stats.max) + ", sum " +
          DoubleText(stats.sum);
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
  }
  return "unknown";
}

std::string ElementText(const std::byte* element, uint32_t dtype) {
  switch (dtype) {
    case 0:
      return std::to_string(Load<int8_t>(element));
    case 1:
      return std::to_string(Load<uint8_t>(element));
    case 2:
      return std::to_string(Load<int32_t>(element));
    case 3:
      return std::to_string(Load<uint32_t>(element));
    case 4:
      return std::to_string(Load<int64_t>(element));
    case 5:
      return std::to_string(Load<uint64_t>(element));
    case 7:
      return FloatText(Load<float>(element));
    case 8:
      return DoubleText(Load<double>(element));
    case 6:
    case 9:
    case 10:
    case 11:
      // Narrower than float: its shortest text is also theirs.
      return FloatText(static_cast<float>(preload::ElementAsDouble(element, dtype)));
    default: {
      char text[8];
      std::snprintf(text, sizeof text, "0x%02x", static_cast<unsigned>(Load<uint8_t>(element)));
      return text;
    }
  }
}

ElementDifference CompareElements(std::span<const std::byte> recorded,
                                  std::span<const std::byte> live, uint32_t dtype) {
  ElementDifference out;
  const uint32_t size = std::max(preload::ElementSize(dtype), 1u);
  const size_t count = std::min(recorded.size(), live.size()) / size;
  for (size_t i = 0; i < count; ++i) {
    const std::byte* a = recorded.data() + i * size;
    const std::byte* b = live.data() + i * size;
    if (std::memcmp(a, b, size) == 0) continue;
    ++out.different;
    if (out.found) continue;
    out.found = true;
    out.first = i;
    out.recorded = ElementText(a, dtype);
    out.live = ElementText(b, dtype);
    out.ulps = preload::UlpDistance(a, b, dtype);
  }
  return out;
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
  if (!thread.empty() && thread != "0") text += ", thread " + thread;
  text += ": ";
  if (kind != DivergenceKind::kInput && kind != DivergenceKind::kSnapshot) return text + what;
  if (!what.empty()) return text + what;
  text += kind == DivergenceKind::kInput ? "input " : "snapshot ";
  text += tensor + " differs from the recording";
  if (element.found) {
    const bool raw = dtype == format::kRawBytes;
    text += raw ? " at byte " : " at element ";
    text += std::to_string(element.first) + " of " + std::to_string(count);
    if (!raw) text += " (" + DTypeText(dtype) + ")";
    text += ": recorded " + element.recorded + ", live " + element.live;
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
    line.Add("recorded", element.recorded);
    line.Add("live", element.live);
    if (element.ulps != UINT64_MAX) line.Add("ulps", element.ulps);
    line.Add("different", element.different);
    line.Close();
  }
  WriteStack(line, "recorded_stack", recorded_stack);
  WriteStack(line, "live_stack", live_stack);
}

}  // namespace deja::replayer

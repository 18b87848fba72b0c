#include "cli/replay/verdict/divergence_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace deja::cli {
namespace {

constexpr size_t kMaxStackFrames = 24;
constexpr size_t kMaxSourceColumns = 120;

std::vector<SourceFrame> FramesOf(const std::vector<FramePart>& stack, Symbolizer& symbolizer) {
  std::vector<SourceFrame> frames;
  for (const FramePart& frame : stack) {
    if (IsDejaModule(frame.module)) continue;
    for (SourceFrame& named :
         symbolizer.Resolve(frame.module, frame.build_id.bytes, frame.offset, true))
      if (!IsDejaModule(named.module)) frames.push_back(std::move(named));
  }
  return frames;
}

std::string WithSource(const SourceFrame& frame) {
  const std::string source = frame.python ? SourceLine(frame.file, frame.line) : "";
  return frame.Describe() + (source.empty() ? "" : ": " + source);
}

std::vector<std::string> StackLines(const std::vector<FramePart>& stack, Symbolizer& symbolizer,
                                    StackDetail detail) {
  std::vector<SourceFrame> frames = FramesOf(stack, symbolizer);
  const auto is_python = [](const SourceFrame& frame) { return frame.python; };
  const bool only_python =
      detail == StackDetail::kPython && std::any_of(frames.begin(), frames.end(), is_python);
  if (only_python) std::erase_if(frames, [](const SourceFrame& frame) { return !frame.python; });
  frames.resize(std::min(frames.size(), kMaxStackFrames));
  std::vector<std::string> lines;
  lines.reserve(frames.size());
  for (const SourceFrame& frame : frames) lines.push_back(WithSource(frame));
  return lines;
}

}  // namespace

std::string SourceLine(const std::string& file, int line) {
  std::error_code error;
  // The name is the trace's: a pipe would make the reader wait.
  if (line <= 0 || !file.ends_with(".py") || !std::filesystem::is_regular_file(file, error))
    return "";
  constexpr uintmax_t kMostSource = 16 << 20;
  if (std::filesystem::file_size(file, error) > kMostSource) return "";
  std::ifstream in(file);
  std::string text;
  for (int at = 0; at < line; ++at)
    if (!std::getline(in, text)) return "";
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  text = text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
  if (text.size() > kMaxSourceColumns) text = text.substr(0, kMaxSourceColumns) + "...";
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      shown += fmt::format("\\x{:02x}", byte);
    else
      shown += c;
  }
  return shown;
}

std::vector<std::string> DivergenceLines(const DivergenceLine& divergence, Symbolizer& symbolizer,
                                         StackDetail detail) {
  std::vector<std::string> lines = {divergence.text};
  const auto add = [&lines](const char* title, const std::vector<std::string>& frames) {
    if (!frames.empty()) lines.emplace_back(title);
    for (const std::string& frame : frames) lines.push_back("  " + frame);
  };
  const std::vector<std::string> recorded =
      StackLines(divergence.recorded_stack, symbolizer, detail);
  const std::vector<std::string> live = StackLines(divergence.live_stack, symbolizer, detail);
  if (recorded == live) {
    add("stack, recorded and live:", live);
    return lines;
  }
  add("recorded stack:", recorded);
  add("live stack:", live);
  return lines;
}

std::vector<std::string> CrashLines(const CrashLine& crash, Symbolizer& symbolizer) {
  std::vector<SourceFrame> frames;
  bool is_return = false;  // all but the innermost frame are in a call
  for (const FramePart& frame : crash.frames) {
    for (SourceFrame& named :
         symbolizer.Resolve(frame.module, frame.build_id.bytes, frame.offset, is_return))
      frames.push_back(std::move(named));
    is_return = true;
  }
  std::stable_partition(frames.begin(), frames.end(),
                        [](const SourceFrame& frame) { return frame.python; });
  frames.resize(std::min(frames.size(), kMaxStackFrames));
  std::vector<std::string> lines = {fmt::format("stack of the crash, thread {}:", crash.thread)};
  for (const SourceFrame& frame : frames) lines.push_back("  " + WithSource(frame));
  return lines;
}

}  // namespace deja::cli

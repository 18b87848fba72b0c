#include "cli/pack/pack_preview.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "cli/events/received_bytes.h"
#include "cli/output.h"
#include "cli/summaries/input_summary.h"
#include "common/secrets/secret_files.h"
#include "common/secrets/secrets.h"
#include "format/layout/payload_segments.h"
#include "format/wire/frame_format.h"

namespace deja::cli {
namespace {

constexpr size_t kExamples = 3;
constexpr size_t kLongestExample = 60;

struct Process {
  std::string folder;
  const format::RankReader* reader = nullptr;
};

// All processes that go into a bundle.
Result<std::vector<Process>> ProcessesOf(format::Trace& trace) {
  std::vector<Process> processes;
  for (const format::RankFolder& folder : trace.ranks()) {
    const auto attempt = static_cast<int>(folder.attempt);
    DEJA_ASSIGN_OR_RETURN(const format::RankReader* const reader, trace.Rank(folder.rank, attempt));
    processes.push_back({folder.path, reader});
    DEJA_ASSIGN_OR_RETURN(const auto children, trace.Children(folder.rank, attempt));
    for (const format::ChildFolder& child : children) {
      DEJA_ASSIGN_OR_RETURN(const format::RankReader* const of_child,
                            trace.Child(folder.rank, child.name, attempt));
      processes.push_back({child.path, of_child});
    }
  }
  return processes;
}

// Larger files are known by their names only.
constexpr uint64_t kMostSearched = 16u << 20;

void AddFiles(const format::RankReader& reader, std::map<std::string, KeptFile>& files) {
  for (const InputFileSummary& summary : ReadInputSummary(reader).files) {
    if (summary.kept == 0) continue;
    KeptFile& file = files[summary.path];
    file.path = summary.path;
    file.bytes += summary.kept;
    if (IsSecretFile(summary.path)) file.warning = "a file of secrets, by its name";
  }
  const ReceivedBytes searched(
      reader,
      [&](std::string_view path, std::string& bytes) {
        const auto file = files.find(std::string(path));
        if (file == files.end() || !file->second.warning.empty()) return;
        const std::string_view counted = SecretRule().MaskCounted(bytes);
        const std::string_view rule = counted.empty() ? SecretRule().MaskText(bytes) : counted;
        if (!rule.empty())
          file->second.warning = fmt::format("bytes that look like a secret ({})", rule);
      },
      ReceivedBytes::Limits{kMostSearched, true});
}

std::vector<KeptFile> Values(std::map<std::string, KeptFile>&& files) {
  std::vector<KeptFile> values;
  values.reserve(files.size());
  for (auto& [path, file] : files) values.push_back(std::move(file));
  return values;
}

std::string Example(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '.');
  return text.size() <= kLongestExample ? text : text.substr(0, kLongestExample) + "…";
}

}  // namespace

Result<std::vector<KeptFile>> ReadKeptFiles(format::Trace& trace) {
  DEJA_ASSIGN_OR_RETURN(const std::vector<Process> processes, ProcessesOf(trace));
  std::map<std::string, KeptFile> files;
  for (const Process& process : processes) AddFiles(*process.reader, files);
  return Values(std::move(files));
}

void PackPreview::Add(const char* kind, std::string_view text) {
  if (!text.empty()) strings_[kind].emplace(text);
}

void PackPreview::AddBytes(const char* kind, uint64_t bytes) {
  if (bytes != 0) bytes_[kind] += bytes;
}

void PackPreview::AddHeader(const format::TraceHeader& header) {
  const format::ProcessInfo& process = header.process;
  Add("hosts", process.hostname);
  Add("users", process.user);
  Add("programs", process.executable);
  Add("working folders", process.working_directory);
  Add("libraries and modules", process.nccl_path);
  Add("machines", process.cpu_model);
  Add("machines", process.kernel);
  for (const std::string_view argument : process.argv) Add("arguments", argument);
  for (const std::string_view entry : process.environment) Add("variables", entry);
}

void PackPreview::AddEvent(const format::Event& event) {
  if (const auto* connection = event.As<format::ConnectionOpened>()) {
    Add("connections", connection->name);
  } else if (const auto* file = event.As<format::InputFile>()) {
    Add(file->program ? "libraries and modules" : "names of files", file->path);
  } else if (const auto* module = event.As<format::ModuleLoaded>()) {
    Add("libraries and modules", module->path);
  } else if (const auto* comm = event.As<format::CommCreated>()) {
    Add("names of communicators", comm->name);
  } else if (const auto* snapshot = event.As<format::Snapshot>()) {
    Add("names of tensors", snapshot->name);
  } else if (const auto* note = event.As<format::Note>()) {
    Add("notes", note->text);
  } else if (const auto* enter = event.As<format::CallEnter>()) {
    Add("texts of calls", enter->text);
  } else if (const auto* transfer = event.As<format::Transfer>()) {
    const bool received =
        transfer->direction == static_cast<uint32_t>(format::TransferKind::kReceived);
    if (received && transfer->result > 0)
      AddBytes("received by connections", static_cast<uint64_t>(transfer->result));
  } else if (const auto* input = event.As<format::Input>()) {
    AddBytes("answers of the system", input->data.size());
  }
}

Result<PackPreview> PackPreview::Make(format::Trace& trace, format::TraceRewriter* rewriter) {
  PackPreview preview;
  DEJA_ASSIGN_OR_RETURN(const std::vector<Process> processes, ProcessesOf(trace));
  if (rewriter != nullptr) {
    for (const Process& process : processes) DEJA_RETURN_IF_ERROR(rewriter->Learn(*process.reader));
    DEJA_RETURN_IF_ERROR(rewriter->Settle());
  }
  std::map<std::string, KeptFile> inputs;
  for (const Process& process : processes) {
    std::vector<std::string> names = {format::kEventsFile};
    for (const uint32_t segment : format::ListSegments(process.folder))
      names.push_back(format::SegmentFileName(segment));
    struct stat info {};
    for (const std::string& name : names) {
      const std::string path = process.folder + "/" + name;
      if (stat(path.c_str(), &info) != 0) continue;
      preview.files_.push_back({process.folder.substr(process.folder.rfind('/') + 1) + "/" + name,
                                static_cast<uint64_t>(info.st_size)});
    }
    format::TraceHeader header = process.reader->header();
    if (rewriter != nullptr) {
      rewriter->Begin(*process.reader);
      rewriter->Rewrite(header);
    }
    preview.AddHeader(header);
    preview.AddBytes("bytes of payloads", process.reader->totals().payload_bytes);
    const auto cursor = process.reader->Events();
    while (const format::Event* event = cursor->Next()) {
      format::Event copy = *event;
      if (rewriter != nullptr) rewriter->Rewrite(copy);
      preview.AddEvent(copy);
    }
    AddFiles(*process.reader, inputs);
  }
  preview.inputs_ = Values(std::move(inputs));
  return preview;
}

void PackPreview::Print() const {
  for (const PreviewedFile& file : files_)
    PrintLine(fmt::format("file     {} ({})", file.name, HumanBytes(file.bytes)));
  PrintLine("file     README.md, manifest.json (what the others say, for people)");
  for (const KeptFile& file : inputs_)
    PrintLine(fmt::format("contents {} ({}){}", Example(file.path), HumanBytes(file.bytes),
                          file.warning.empty() ? "" : ": " + file.warning));
  for (const auto& [kind, texts] : strings_) {
    std::string examples;
    size_t count = 0;
    for (const std::string& text : texts) {
      if (count++ == kExamples) break;
      examples += (examples.empty() ? "" : ", ") + Example(text);
    }
    PrintLine(fmt::format("strings  {} {}: {}{}", HumanCount(texts.size()), kind, examples,
                          texts.size() > kExamples ? ", …" : ""));
  }
  for (const auto& [kind, bytes] : bytes_)
    PrintLine(fmt::format("bytes    {}: {}", kind, HumanBytes(bytes)));
}

nlohmann::json PackPreview::ToJson() const {
  nlohmann::json json = {{"files", nlohmann::json::array()},
                         {"contents", nlohmann::json::array()},
                         {"strings", strings_},
                         {"bytes", bytes_}};
  for (const PreviewedFile& file : files_)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  for (const char* name : {"README.md", "manifest.json"}) json["files"].push_back({{"name", name}});
  for (const KeptFile& file : inputs_)
    json["contents"].push_back(
        {{"path", file.path}, {"bytes", file.bytes}, {"warning", file.warning}});
  return json;
}

}  // namespace deja::cli

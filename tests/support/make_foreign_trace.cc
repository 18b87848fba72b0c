// Writes a trace of one rank that was never recorded, for tests of a stranger's trace. The test
// chooses its program, folder and text.
//
// usage: make_foreign_trace TRACE_DIR EXECUTABLE BUILD_ID FOLDER TEXT [ARGUMENT…]
//   BUILD_ID  hexadecimal, or empty; TEXT stands in every string that a trace can have
#include <memory>
#include <string>
#include <vector>

#include "format/layout/rank_folder.h"
#include "format/wire/format_version.h"
#include "format/wire/frame_format.h"
#include "format/wire/frame_writer.h"
#include "format/wire/message_codec.h"
#include "tests/support/memory_append_file.h"
#include "tests/support/sample_trace.h"

namespace deja::format {
namespace {

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

class Writer {
 public:
  explicit Writer(const std::string& text)
      : text_(text), events_(std::make_unique<MemoryAppendFile>(&rank_.events_file)) {}

  samples::SampleRank Write(const TraceHeader& header) {
    (void)events_.WriteHeader(header);
    AddEvents();
    (void)events_.Write(FrameType::kEvents, AsBytes(batch_));
    return std::move(rank_);
  }

 private:
  template <typename Body>
  void Add(const Body& body) {
    const EventHead head{0, seq_++, 1000 * seq_};
    AppendToBatch(AsBytes(EncodeEventToString(head, body)), batch_);
  }

  void AddEvents() {
    const std::string_view text = text_;
    Add(ThreadStart{0, text, 4000});
    Add(CommCreated{1, 0x1122334455667788, 0, 1, 0, text, -1, 0x55});
    Add(Note{text});
    Add(ModuleLoaded{1, text, "id", 0x555555554000, 0x555555560000});
    StackDefined stack;
    stack.stack = 1;
    stack.frames = {{1, 0x1234}};
    Add(stack);
    Snapshot snapshot;
    snapshot.name = text;
    snapshot.stack = 1;
    Add(snapshot);
    CallEnter enter;
    enter.api = kUnknownApi;
    enter.stack = 1;
    enter.blob = text;
    enter.text = text;
    Add(enter);
    CallLeave leave;
    leave.blob = text;
    Add(leave);
    ConnectionOpened opened;
    opened.connection = 1;
    opened.kind = static_cast<uint32_t>(ConnectionKind::kConnected);
    opened.name = text;
    opened.remote = text;
    opened.peer = text;
    Add(opened);
    InputFile file;
    file.file = 1;
    file.path = text;
    file.mode = 0100644;
    file.entries = text;
    Add(file);
    file.file = 2;
    file.program = true;
    Add(file);
    Add(Input{kUnknownApi, 0, 16, 0, text, {}});
    Add(AlgorithmChosen{1, 1, kUnknownApi, text, text, 2, 8});
    WindowChange window;
    window.what = static_cast<uint32_t>(WindowEvent::kMarked);
    window.reason = text;
    Add(window);
    Add(Degraded{text, 3, 2, 1 << 20});
    Child child;
    child.number = 1;
    child.pid = 4711;
    child.program = text;
    child.arguments = text;
    Add(child);
    Crash crash;
    crash.signal = 11;
    crash.stack = 1;
    crash.frames = stack.frames;
    Add(crash);
    ProcessExit exit;
    exit.program = text;
    exit.arguments = text;
    Add(exit);
  }

  static constexpr uint32_t kUnknownApi = 999'999;  // whose name is in the header
  const std::string text_;
  samples::SampleRank rank_;
  FrameWriter events_;
  std::string batch_;
  uint64_t seq_ = 0;
};

}  // namespace
}  // namespace deja::format

int main(int argc, char** argv) {
  using namespace deja::format;
  constexpr int kArguments = 6;
  if (argc < kArguments) return 2;
  const std::string executable = argv[2];
  const std::string build_id = FromHex(argv[3]);
  const std::string folder = argv[4];
  const std::string text = argv[5];
  TraceHeader header;
  header.format_major = kFormatMajor;
  header.format_minor = kFormatMinor;
  header.producer = text;
  header.job_id = "0123456789abcdef";
  header.world_size = 1;
  header.level = 2;
  header.process.pid = 4000;
  header.process.parent_pid = 3999;
  header.process.hostname = text;
  header.process.executable = executable;
  header.process.executable_build_id = build_id;
  header.process.argv = {executable};
  for (int i = kArguments; i < argc; ++i) header.process.argv.emplace_back(argv[i]);
  const std::string variable = "NAME" + text + "=" + text;
  header.process.environment = {"PATH=/usr/bin:/bin", variable};
  header.process.working_directory = folder;
  header.process.kernel = text;
  header.process.nccl_path = text;
  header.process.masked = {text};
  header.process.cpu_model = text;
  header.process.cpu_features = text;
  header.process.user = text;
  header.process.cgroup_file = text;
  header.start_wall_ns = 1'700'000'000'000'000'000;
  header.apis = {{999'999, text}};
  samples::WriteSampleRank(Writer(text).Write(header),
                           std::string(argv[1]) + "/" + MakeRankFolderName(0, 0));
  return 0;
}

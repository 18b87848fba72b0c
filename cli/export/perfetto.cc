// Export as Perfetto's protobuf (protos/perfetto/trace of its source), which ui.perfetto.dev opens.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "cli/export/formats.h"
#include "common/text/plain_text.h"

namespace deja::cli {
namespace {

// A message as it grows. Numbers of fields are Perfetto's.
class Message {
 public:
  Message& Number(uint32_t field, uint64_t value) {
    Varint(uint64_t{field} << 3);
    Varint(value);
    return *this;
  }
  Message& Fixed64(uint32_t field, uint64_t value) {
    Varint(uint64_t{field} << 3 | 1);
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(value >> shift);
    return *this;
  }
  Message& Text(uint32_t field, std::string_view text) {
    Varint(uint64_t{field} << 3 | 2);
    Varint(text.size());
    bytes_ += text;
    return *this;
  }
  Message& Inner(uint32_t field, const Message& inner) { return Text(field, inner.bytes_); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

namespace trace {
constexpr uint32_t kPacket = 1;
}
namespace packet {
constexpr uint32_t kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12,
                   kSequenceFlags = 13, kTrackDescriptor = 60;
}
namespace track {
constexpr uint32_t kUuid = 1, kName = 2, kProcess = 3, kParentUuid = 5, kOrder = 12;
}
namespace process {
constexpr uint32_t kPid = 1, kName = 6;
}
namespace event {
constexpr uint32_t kAnnotation = 4, kType = 9, kNameId = 10, kTrackUuid = 11, kFlowId = 47;
constexpr uint64_t kBegin = 1, kEnd = 2;
}  // namespace event
namespace annotation {
constexpr uint32_t kNumber = 3, kText = 6, kName = 10;
}
namespace interned {
constexpr uint32_t kEventName = 2, kId = 1, kText = 2;
}
constexpr uint64_t kSequence = 1;
constexpr uint64_t kStateCleared = 1;
constexpr uint64_t kNeedsState = 2;

class PerfettoWriter {
 public:
  PerfettoWriter(const ExportSource& source, ExportFile& file) : source_(source), file_(file) {}

  void Write() {
    Put(Message().Number(packet::kSequenceFlags, kStateCleared));
    for (size_t r = 0; r < source_.job.ranks.size(); ++r) AddRank(r);
    for (size_t i = 0; i < source_.operations.size(); ++i) AddOperation(i);
  }

 private:
  void Put(Message packet) {
    packet.Number(packet::kSequenceId, kSequence);
    file_.Write(Message().Inner(trace::kPacket, packet).bytes());
  }
  // Track of a rank; its children have numbers above those of all ranks.
  static uint64_t RankTrack(size_t index) { return index + 1; }
  uint64_t NewTrack(size_t rank, const std::string& name) {
    const uint64_t uuid = source_.job.ranks.size() + ++tracks_;
    Put(Message().Inner(packet::kTrackDescriptor, Message()
                                                      .Number(track::kUuid, uuid)
                                                      .Number(track::kParentUuid, RankTrack(rank))
                                                      .Text(track::kName, name)));
    return uuid;
  }

  // Names are written once.
  uint64_t NameId(const std::string& name) {
    const auto [it, added] = names_.try_emplace(name, names_.size() + 1);
    if (added)
      Put(Message()
              .Number(packet::kSequenceFlags, kNeedsState)
              .Inner(packet::kInternedData,
                     Message().Inner(interned::kEventName,
                                     Message()
                                         .Number(interned::kId, it->second)
                                         .Text(interned::kText, PlainText(name)))));
    return it->second;
  }

  void PutEvent(uint64_t time_ns, const Message& event) {
    Put(Message()
            .Number(packet::kTimestamp, time_ns)
            .Number(packet::kSequenceFlags, kNeedsState)
            .Inner(packet::kTrackEvent, event));
  }
  void PutEnd(uint64_t time_ns, uint64_t track_uuid) {
    PutEvent(time_ns,
             Message().Number(event::kType, event::kEnd).Number(event::kTrackUuid, track_uuid));
  }

  void AddRank(size_t index) {
    Put(Message().Inner(
        packet::kTrackDescriptor,
        Message()
            .Number(track::kUuid, RankTrack(index))
            .Number(track::kOrder, index)
            // Numbers of processes may be the same on two machines.
            .Inner(track::kProcess, Message()
                                        .Number(process::kPid, source_.job.ranks[index].rank + 1)
                                        .Text(process::kName, source_.RankName(index)))));
    const auto& steps = source_.ranks[index].steps;
    if (steps.empty()) return;
    const uint64_t uuid = NewTrack(index, "steps");
    for (size_t i = 0; i < steps.size(); ++i) {
      const uint64_t end = i + 1 < steps.size()
                               ? steps[i + 1].second
                               : std::max(steps[i].second, source_.job.ranks[index].last_time_ns);
      PutEvent(steps[i].second,
               Message()
                   .Number(event::kType, event::kBegin)
                   .Number(event::kTrackUuid, uuid)
                   .Number(event::kNameId, NameId(fmt::format("step {}", steps[i].first))));
      PutEnd(end, uuid);
    }
  }

  void AddOperation(size_t index) {
    const check::JoinedOperation& one = source_.operations[index];
    for (const check::Part& part : one.parts) {
      const size_t lane = lanes_.Of(part.rank, one.communicator, part);
      const auto [it, added] =
          operation_tracks_.try_emplace({part.rank, one.communicator, lane}, 0);
      if (added) it->second = NewTrack(part.rank, source_.CommName(one.communicator));
      Message begin;
      begin.Number(event::kType, event::kBegin)
          .Number(event::kTrackUuid, it->second)
          .Number(event::kNameId, NameId(source_.job.SignatureText(*part.call)));
      const auto add_number = [&](std::string_view name, uint64_t value) {
        begin.Inner(event::kAnnotation,
                    Message().Text(annotation::kName, name).Number(annotation::kNumber, value));
      };
      const auto add_text = [&](std::string_view name, const std::string& text) {
        if (!text.empty())
          begin.Inner(
              event::kAnnotation,
              Message().Text(annotation::kName, name).Text(annotation::kText, PlainText(text)));
      };
      add_number("number", one.number);
      if (part.call->step != check::kNoStep) add_number("step", part.call->step);
      const uint64_t until = std::min(one.met_ns, part.end_ns);
      add_number("waited_ns", until > part.begin_ns ? until - part.begin_ns : 0);
      add_text("site", check::Describe(source_.job.sites[part.call->site]));
      if (part.is_open) add_text("state", "never done");
      if (part.call->Is(check::kFailed)) add_text("state", "failed");
      if (!one.agrees) add_text("ranks", "called different things");
      if (one.parts.size() > 1) begin.Fixed64(event::kFlowId, index + 1);
      PutEvent(part.begin_ns, begin);
      PutEnd(part.end_ns, it->second);
    }
  }

  const ExportSource& source_;
  ExportFile& file_;
  Lanes lanes_;
  std::map<std::tuple<size_t, size_t, size_t>, uint64_t> operation_tracks_;
  std::map<std::string, uint64_t> names_;
  uint64_t tracks_ = 0;
};

}  // namespace

Status ExportPerfetto(const ExportSource& source, const std::string& path) {
  DEJA_ASSIGN_OR_RETURN(auto file, ExportFile::Create(path));
  PerfettoWriter(source, file).Write();
  return file.Finish();
}

}  // namespace deja::cli

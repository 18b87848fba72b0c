// The part of PlanBuilder that sorts what came from outside: clocks, entropy, connections, files.
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "format/reader/file_ranges.h"
#include "format/tail/lock_reading.h"
#include "replayer/plan/plan_builder.h"

namespace deja::replayer {

void PlanBuilder::AddReading(const format::Event& event, format::ClockSource source,
                             int64_t value) {
  if (format::IsUnseenReading(source)) return;
  RecordedThread& thread = Thread(event.thread);
  if (source == format::ClockSource::kUnseen) {
    const auto stream = thread.clocks.find(static_cast<uint32_t>(value));
    if (stream == thread.clocks.end() || !stream->second.TakeLast()) return;
    if (thread.last_reading.readings != 0) --thread.last_reading.readings;
    return;
  }
  const auto number = static_cast<uint32_t>(source);
  // A checkpoint begins a segment, so that what was read before it in the same one is left out.
  const uint64_t segment = thread.strict_events + thread.entropy_events + (behind_start_ ? 1 : 0);
  if (format::IsLockReading(source)) return thread.locks.Add(segment, source, value);
  if (const uint64_t events = thread.CountedEvents(); thread.last_reading.events != events)
    thread.last_reading = {events, 0, 0, true};
  ++thread.last_reading.readings;
  thread.clocks[number].Add(segment, value);
  plan_.first_readings_.try_emplace(number, FirstReading{value, event.time_ns});
}

namespace {

MetByThen::Meeting MeetingOf(const RecordedInput& input) {
  const auto api = static_cast<api::LibcApi>(input.api);
  if (api == api::LibcApi::ksocketpair) return MetByThen::Meeting::kWrite;
  const bool found = api == api::LibcApi::kpoll && input.result > 0;
  return found ? MetByThen::Meeting::kFound : MetByThen::Meeting::kOther;
}

}  // namespace

void PlanBuilder::AddInput(const format::Event& event, const format::Input& input) {
  const auto index = static_cast<uint32_t>(plan_.inputs_.size());
  RecordedInput recorded;
  recorded.api = input.api;
  recorded.thread = ThreadAt(event.thread);
  recorded.key = input.key;
  recorded.result = input.result;
  recorded.error = static_cast<int32_t>(input.error);
  recorded.data = Keep(plan_.bytes_, input.data);
  recorded.hash = input.hash;
  if (std::string made = created_.Add(event.thread, input.api, input.data); !made.empty())
    plan_.created_ns_.try_emplace(std::move(made), event.time_ns);
  plan_.inputs_.push_back(recorded);
  RecordedThread& thread = plan_.threads_[recorded.thread];
  const InputKey key{input.api, input.key};
  if (input.api == static_cast<uint32_t>(api::LibcApi::ksigaction)) {
    const uint64_t events = thread.CountedEvents();
    const bool has_read = thread.last_reading.events == events;
    const int64_t place = input.result;
    RecordedSignal signal{events, has_read && place <= 0 ? thread.last_reading.readings : 0, 0,
                          true};
    if (place != 0) signal.file_calls = static_cast<uint64_t>(place > 0 ? place : -place) - 1;
    signal.exact = place >= 0;
    signal.sleeps = input.error;
    thread.child_signals.push_back(signal);
    return;
  }
  const bool is_meeting = kinds_.input(input.api) == api::InputKind::kMeeting;
  if (is_meeting) {
    ++thread.meetings;
    plan_.met_by_then_.AddMeeting(recorded.thread, MeetingOf(recorded), index, event.time_ns);
  }
  if (is_meeting && recorded.result < 0 && recorded.error == EINTR) thread.was_interrupted = true;
  if (kinds_.input(input.api) == api::InputKind::kEntropy) {
    thread.entropy[input.api].push_back(index);
    ++thread.entropy_events;
  } else {
    thread.by_key[key].push_back(index);
  }
  plan_.identities_.try_emplace(key, index);
}

void PlanBuilder::AddCollection(const format::Event& event,
                                const format::GarbageCollection& collection) {
  RecordedThread& thread = Thread(event.thread);
  has_python_threads_ |= collection.has_threads;
  std::vector<RecordedCollection>& all = thread.collections;
  if (!collection.ended) {
    all.push_back({thread.CountedEvents(), collection.generation, event.time_ns, false});
    return;
  }
  if (all.empty() || thread.CountedEvents() == all.back().events) return;
  // Where its beginning is not there, it began after the same events as the last one that is.
  if (all.back().generation != collection.generation)
    all.push_back({all.back().events, collection.generation, 0, false});
  all.back().time_ns = event.time_ns - std::min(event.time_ns, collection.lasted_ns);
  all.back().acts = true;
}

void PlanBuilder::ListActingCollections() {
  if (!has_python_threads_) return;
  auto& acting = plan_.acting_collections_;
  for (uint32_t i = 0; i < plan_.threads_.size(); ++i) {
    const auto& collections = plan_.threads_[i].collections;
    for (uint32_t number = 0; number < collections.size(); ++number)
      if (collections[number].acts) acting.push_back({collections[number].time_ns, i, number});
  }
  std::sort(acting.begin(), acting.end(), [](const ActingCollection& a, const ActingCollection& b) {
    return a.time_ns < b.time_ns;
  });
}

void PlanBuilder::AddConnection(const format::Event& event,
                                const format::ConnectionOpened& opened) {
  connection_at_.try_emplace(opened.connection, static_cast<uint32_t>(plan_.connections_.size()));
  PlannedConnection connection;
  connection.name = std::string(opened.name);
  connection.kind = static_cast<format::ConnectionKind>(opened.kind);
  connection.type = opened.type;
  connection.local = std::string(opened.local);
  connection.remote = std::string(opened.remote);
  connection.result = opened.result;
  connection.error = static_cast<int32_t>(opened.error);
  connection.listener = opened.listener;  // its number, until all are known
  connection.own = opened.own;
  connection.file_size = opened.file_size;
  connection.peer = std::string(opened.peer);
  connection.thread = ThreadAt(event.thread);
  connection.seq = event.seq;
  connection.time_ns = event.time_ns;
  if (connection.IsConnectOrAccept() && connection.IsUnix())
    ++plan_.threads_[connection.thread].transfers;
  plan_.connections_.push_back(std::move(connection));
}

bool PlannedConnection::IsUnix() const {
  const auto is_unix = [](std::string_view address) {
    sa_family_t family = AF_UNSPEC;
    if (address.size() >= sizeof family) std::memcpy(&family, address.data(), sizeof family);
    return family == AF_UNIX;
  };
  return is_unix(local) || is_unix(remote);
}

void PlanBuilder::AddTransfer(const format::Event& event, const format::Transfer& recorded) {
  PlannedTransfer transfer;
  transfer.connection = recorded.connection;  // its number, until all are known
  transfer.kind = static_cast<format::TransferKind>(recorded.direction);
  transfer.number = recorded.number;
  transfer.result = recorded.result;
  transfer.error = static_cast<int32_t>(recorded.error);
  transfer.data = Keep(plan_.bytes_, recorded.data);
  transfer.hash = recorded.hash;
  transfer.sent_before = recorded.sent_before;
  transfer.sent_hash = recorded.sent_hash;
  transfer.address = Keep(plan_.bytes_, recorded.address);
  transfer.position = recorded.position;
  transfer.flags = recorded.flags;
  transfer.thread = ThreadAt(event.thread);
  const auto of = connection_at_.find(recorded.connection);
  if (of != connection_at_.end() && plan_.connections_[of->second].IsUnix() &&
      (transfer.kind == format::TransferKind::kReceived ||
       transfer.kind == format::TransferKind::kSent))
    ++plan_.threads_[transfer.thread].transfers;
  transfer.seq = event.seq;
  transfer.time_ns = event.time_ns;
  plan_.transfers_.push_back(transfer);
}

void PlanBuilder::ResolveConnections() {
  auto position = [this](uint32_t number) {
    auto it = connection_at_.find(number);
    return it == connection_at_.end() ? kNone : it->second;
  };
  for (PlannedConnection& connection : plan_.connections_)
    connection.listener = connection.listener == 0 ? kNone : position(connection.listener);
  for (PlannedTransfer& transfer : plan_.transfers_)
    transfer.connection = position(transfer.connection);
  std::erase_if(plan_.transfers_,
                [](const PlannedTransfer& transfer) { return transfer.connection == kNone; });
}

void PlanBuilder::AddFile(const format::Event& event, const format::InputFile& recorded) {
  RecordedFile file;
  file.number = recorded.file;
  file.path = std::string(recorded.path);
  file.mode = recorded.mode;
  file.size = recorded.size;
  file.mtime_ns = recorded.mtime_ns;
  file.device = recorded.device;
  file.inode = recorded.inode;
  file.error = static_cast<int32_t>(recorded.error);
  file.opens = recorded.opens;
  file.written = recorded.written;
  file.tries = recorded.tries;
  file.looks = recorded.looks;
  file.entries = std::string(recorded.entries);
  file.entries_hash = recorded.entries_hash;
  file.time_ns = event.time_ns;
  plan_.files_.push_back(std::move(file));
}

void PlanBuilder::AddRanges(const format::FileRead& event) {
  for (const format::FileRange& range : format::RangesOf(event))
    file_ranges_[event.file].push_back(
        {range.begin, range.size, range.hash, static_cast<format::FileReadHow>(event.how),
         event.payload == static_cast<uint32_t>(format::PayloadState::kKept), event.segment});
}

void PlanBuilder::ResolveFiles() {
  for (uint32_t i = 0; i < plan_.files_.size(); ++i) {
    RecordedFile& file = plan_.files_[i];
    auto& by_path = S_ISLNK(file.mode) ? plan_.link_by_path_ : plan_.file_by_path_;
    by_path[file.path].push_back(i);
    const auto ranges = file_ranges_.find(file.number);
    if (ranges == file_ranges_.end()) continue;
    file.ranges = std::move(ranges->second);
    file_ranges_.erase(ranges);
    std::stable_sort(
        file.ranges.begin(), file.ranges.end(),
        [](const RecordedRange& a, const RecordedRange& b) { return a.begin < b.begin; });
  }
  for (auto* by_path : {&plan_.file_by_path_, &plan_.link_by_path_})
    for (auto& [path, states] : *by_path)
      std::stable_sort(states.begin(), states.end(), [this](uint32_t a, uint32_t b) {
        return plan_.files_[a].opens < plan_.files_[b].opens;
      });
}

}  // namespace deja::replayer

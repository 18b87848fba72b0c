#include "replayer/sockets/fifos.h"

#include <unordered_map>

#include "api/libc_table.h"
#include "format/reader/rank_reader.h"
#include "preload/meet/connection_names.h"
#include "replayer/forks/children.h"

namespace deja::replayer {

using format::EventKind;
using format::KindBit;
using preload::FifoName;

namespace {

bool IsCreation(const format::Input& input) {
  return api::InputKindOf(input.api) == api::InputKind::kCreated;
}

}  // namespace

Fifos::Fifos(const ReplayPlan& plan, const std::string& rank, const std::string& scratch) {
  for (const PlannedConnection& connection : plan.connections())
    if (const FifoName fifo(connection.name); !fifo.path.empty())
      paths_.try_emplace(std::string(fifo.path));
  if (!any()) return;
  AddRecording(rank);
  for (const std::string& folder : ChildFolders(scratch)) AddRecording(folder);
}

bool Fifos::IsLive(std::string_view connection) const {
  const FifoName fifo(connection);
  const auto it = fifo.path.empty() ? paths_.end() : paths_.find(fifo.path);
  return it != paths_.end() && it->second.is_live();
}

void Fifos::AddRecording(const std::string& folder) {
  const auto reader = format::RankReader::Open(folder);
  if (!reader) return;
  std::unordered_map<uint32_t, Use*> by_connection;
  const auto cursor = (*reader)->Events();
  constexpr uint64_t kKinds = KindBit(EventKind::kConnectionOpened) |
                              KindBit(EventKind::kTransfer) | KindBit(EventKind::kInput);
  while (const format::Event* event = cursor->NextOf(kKinds)) {
    if (const auto* input = event->As<format::Input>()) {
      const auto it = IsCreation(*input) ? paths_.find(input->data) : paths_.end();
      if (it != paths_.end()) it->second.made = true;
    } else if (const auto* opened = event->As<format::ConnectionOpened>()) {
      const FifoName fifo(opened->name);
      const auto it = fifo.path.empty() ? paths_.end() : paths_.find(fifo.path);
      if (it == paths_.end() || opened->result < 0) continue;
      by_connection[opened->connection] = &it->second;
      // A process may open it for both only to never meet its end.
      it->second.read |= fifo.reads;
      it->second.written |= fifo.writes && !fifo.reads;
    } else if (const auto* transfer = event->As<format::Transfer>()) {
      const auto it = by_connection.find(transfer->connection);
      if (it == by_connection.end() || transfer->result <= 0) continue;
      const auto kind = static_cast<format::TransferKind>(transfer->direction);
      it->second->read |= kind == format::TransferKind::kReceived;
      it->second->written |= kind == format::TransferKind::kSent;
    }
  }
}

}  // namespace deja::replayer

#include "replayer/sockets/connection_script.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace deja::replayer {

using format::ConnectionKind;
using format::TransferKind;

namespace {

// An event of the script, to be sorted by its place on its thread.
struct Placed {
  uint64_t seq = 0;
  uint32_t connection = 0;
  bool in = false;
  uint32_t index = 0;
  bool ahead = true;  // not before the checkpoint from which the replay starts
};

}  // namespace

struct ConnectionScript::RunningHash {
  XXH3_state_t state;
};

ConnectionScript::Line::Line() = default;
ConnectionScript::Line::~Line() = default;
ConnectionScript::Line::Line(Line&&) noexcept = default;

ConnectionScript::ConnectionScript(const ReplayPlan& plan, const IsFamilyPeer& is_family_peer,
                                   const Fifos& fifos)
    : plan_(plan), lines_(plan.connections().size()), threads_(plan.threads().size()) {
  const auto& connections = plan.connections();
  for (uint32_t c = 0; c < connections.size(); ++c) {
    by_name_.emplace(connections[c].name, c);
    const PlannedConnection& info = connections[c];
    lines_[c].family =
        !info.own && (is_family_peer(info.peer, info.time_ns) || fifos.IsLive(info.name));
  }

  std::vector<const PlannedTransfer*> transfers;
  for (const PlannedTransfer& transfer : plan.transfers())
    if (!lines_[transfer.connection].family && !connections[transfer.connection].own)
      transfers.push_back(&transfer);
  std::stable_sort(transfers.begin(), transfers.end(), [](const auto* a, const auto* b) {
    return std::pair(a->connection, a->number) < std::pair(b->connection, b->number);
  });
  std::vector<std::vector<Placed>> placed(threads_.size());
  std::vector<uint64_t> peeked(lines_.size());
  for (const PlannedTransfer* transfer : transfers) {
    Line& line = lines_[transfer->connection];
    const bool ahead = plan.IsAhead(transfer->thread, transfer->seq, transfer->time_ns);
    if (transfer->kind == TransferKind::kState) {
      line.states.push_back(transfer->error);
      if (!ahead) line.start_state = line.states.size();
      continue;
    }
    if (transfer->kind == TransferKind::kPeeked) {
      uint64_t& far = peeked[transfer->connection];
      far = std::max(far, static_cast<uint64_t>(std::max<int64_t>(0, transfer->result)));
      continue;
    }
    const bool in = transfer->kind == TransferKind::kReceived;
    const size_t index = in ? line.in.size() : line.out.size();
    placed[transfer->thread].push_back(
        {transfer->seq, transfer->connection, in, static_cast<uint32_t>(index), ahead});
    if (!ahead) (in ? line.start_in : line.start_out) = index + 1;
    if (in) {
      Chunk chunk;
      chunk.transfer = transfer;
      chunk.sent_before = transfer->sent_before;
      chunk.time_ns = transfer->time_ns;
      chunk.thread = transfer->thread;
      chunk.peeked = std::exchange(peeked[transfer->connection], 0);
      line.in.push_back(chunk);
    } else {
      Out out;
      out.begin = transfer->sent_before;
      out.end = out.begin + static_cast<uint64_t>(std::max<int64_t>(0, transfer->result));
      out.hash = transfer->sent_hash;
      out.error = transfer->error;
      out.thread = transfer->thread;
      line.out.push_back(out);
    }
  }
  for (uint32_t c = 0; c < connections.size(); ++c) {
    const PlannedConnection& connection = connections[c];
    if (connection.kind != ConnectionKind::kAccepted || connection.listener == kNone) continue;
    Line& line = lines_[connection.listener];
    const bool ahead = plan.IsAhead(connection.thread, connection.seq, connection.time_ns);
    placed[connection.thread].push_back(
        {connection.seq, connection.listener, true, static_cast<uint32_t>(line.in.size()), ahead});
    if (!ahead) line.start_in = line.in.size() + 1;
    Chunk chunk;
    chunk.accepted = c;
    chunk.time_ns = connection.time_ns;
    chunk.thread = connection.thread;
    line.in.push_back(chunk);
  }
  for (size_t t = 0; t < placed.size(); ++t) {
    std::stable_sort(placed[t].begin(), placed[t].end(),
                     [](const Placed& a, const Placed& b) { return a.seq < b.seq; });
    for (const Placed& p : placed[t]) {
      const auto step = static_cast<uint32_t>(threads_[t].steps.size());
      threads_[t].steps.push_back({p.connection, p.in, p.index});
      if (!p.ahead) threads_[t].start_made = threads_[t].steps.size();
      (p.in ? lines_[p.connection].in[p.index].step : lines_[p.connection].out[p.index].step) =
          step;
    }
  }
  for (const Line& line : lines_) left_ += line.in.size();
}

ConnectionScript::~ConnectionScript() = default;

void ConnectionScript::StartLate() {
  left_ = 0;
  for (uint32_t c = 0; c < lines_.size(); ++c) {
    Line& line = lines_[c];
    if (line.start_in > line.next_in) {
      line.next_in = line.start_in;
      line.taken = 0;
    }
    if (line.start_out > line.next_out) {
      line.next_out = line.start_out;
      line.sent = line.out[line.start_out - 1].end;
      line.cut_open = false;
    }
    line.next_state = std::max(line.next_state, line.start_state);
    left_ += line.in.size() - line.next_in;
    released_.push_back(c);
  }
  for (ThreadSteps& thread : threads_) thread.made = std::max(thread.made, thread.start_made);
}

uint32_t ConnectionScript::Find(std::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? kNone : it->second;
}

const PlannedConnection& ConnectionScript::Info(uint32_t c) const {
  return plan_.connections()[c];
}

bool ConnectionScript::IsStream(uint32_t c) const {
  return Info(c).type != SOCK_DGRAM || Info(c).kind == ConnectionKind::kInherited;
}

const ConnectionScript::Chunk* ConnectionScript::Next(uint32_t c) const {
  return Ahead(c, 0);
}

const ConnectionScript::Chunk* ConnectionScript::Ahead(uint32_t c, size_t ahead) const {
  const Line& line = lines_[c];
  const size_t at = line.next_in + ahead;
  return at < line.in.size() ? &line.in[at] : nullptr;
}

bool ConnectionScript::HasSentEnough(const Line& line) const {
  return line.in[line.next_in].sent_before <= line.sent || line.next_in < line.forced;
}

bool ConnectionScript::IsDue(uint32_t c) const {
  const Line& line = lines_[c];
  if (line.next_in >= line.in.size() || !HasSentEnough(line)) return false;
  const Chunk& chunk = line.in[line.next_in];
  return threads_[chunk.thread].made == chunk.step || line.next_in < line.relaxed;
}

bool ConnectionScript::OnlyEndsLeft(uint32_t c) const {
  const Line& line = lines_[c];
  return std::all_of(line.in.begin() + static_cast<std::ptrdiff_t>(line.next_in), line.in.end(),
                     [](const Chunk& chunk) { return chunk.IsEnd(); });
}

bool ConnectionScript::WasEnded(uint32_t c) const {
  const Line& line = lines_[c];
  return !line.in.empty() && line.in.back().IsEnd();
}

bool ConnectionScript::IsMade(const Step& step) const {
  const Line& line = lines_[step.connection];
  if (line.closed) return true;
  if (step.in) return line.next_in > step.index;
  return line.sent >= line.out[step.index].end;
}

// Something has happened on `c`: turns pass on.
void ConnectionScript::Advance(uint32_t c) {
  released_.push_back(c);
  for (ThreadSteps& thread : threads_) {
    if (thread.made >= thread.steps.size() || thread.steps[thread.made].connection != c) continue;
    while (thread.made < thread.steps.size() && IsMade(thread.steps[thread.made])) ++thread.made;
    if (thread.made < thread.steps.size())
      released_.push_back(thread.steps[thread.made].connection);
  }
}

void ConnectionScript::Take(uint32_t c, size_t bytes, bool whole) {
  Line& line = lines_[c];
  line.taken += bytes;
  if (!whole) return;
  line.taken = 0;
  ++line.next_in;
  --left_;
  Advance(c);
}

std::string ConnectionScript::Differs(uint32_t c, std::string what) {
  Line& line = lines_[c];
  if (line.differs) return {};
  line.differs = true;
  return "connection '" + Info(c).name + "': " + std::move(what);
}

std::string ConnectionScript::Compare(uint32_t c, std::span<const std::byte> bytes) {
  Line& line = lines_[c];
  std::string difference;
  while (!bytes.empty() && line.next_out < line.out.size()) {
    const Out& out = line.out[line.next_out];
    if (out.error != 0 || out.end <= line.sent) {  // nothing to compare with
      ++line.next_out;
      continue;
    }
    const size_t n = std::min<uint64_t>(bytes.size(), out.end - line.sent);
    const bool begins = !line.cut_open;
    const bool ends = line.sent + n == out.end;
    uint64_t hash = 0;
    if (begins && ends) {
      hash = XXH3_64bits(bytes.data(), n);
    } else {
      if (line.hash == nullptr) line.hash = std::make_unique<RunningHash>();
      if (begins) XXH3_64bits_reset(&line.hash->state);
      XXH3_64bits_update(&line.hash->state, bytes.data(), n);
      if (ends) hash = XXH3_64bits_digest(&line.hash->state);
    }
    line.cut_open = !ends;
    if (ends) {
      // Without a hash (a redacted bundle) only its length is known.
      if (hash != out.hash && out.hash != 0 && difference.empty())
        difference = Differs(c, "what the program sends differs from the recording in bytes " +
                                    std::to_string(out.begin) + " to " +
                                    std::to_string(out.end - 1) + " of what it sends there");
      ++line.next_out;
    }
    line.sent += n;
    bytes = bytes.subspan(n);
  }
  if (!bytes.empty()) {
    // After a recording that was cut off ends, anything goes.
    const bool goes_on = line.next_in < line.in.size() || plan_.end().kind == EndKind::kExit;
    if (goes_on && difference.empty())
      difference = Differs(c, "the program sends more than the " + std::to_string(line.sent) +
                                  " bytes that the recorded run sent there");
    line.sent += bytes.size();
  }
  return difference;
}

ConnectionScript::Sent ConnectionScript::Send(uint32_t c, std::span<const std::byte> bytes,
                                              bool may_cut) {
  Line& line = lines_[c];
  Sent sent;
  while (line.next_out < line.out.size() && line.out[line.next_out].error == 0 &&
         line.out[line.next_out].end <= line.sent)
    ++line.next_out;
  if (line.next_out < line.out.size() && !line.cut_open) {
    const Out& out = line.out[line.next_out];
    if (out.error != 0 && out.begin == line.sent) {
      // The last error stays, as it does in a socket.
      if (line.next_out + 1 < line.out.size()) ++line.next_out;
      Advance(c);
      sent.result = -1;
      sent.error = out.error;
      return sent;
    }
    if (may_cut && out.error == 0 && out.begin == line.sent && out.end - out.begin < bytes.size())
      bytes = bytes.first(out.end - out.begin);
  }
  sent.result = static_cast<int64_t>(bytes.size());
  sent.difference = Compare(c, bytes);
  Advance(c);
  return sent;
}

int ConnectionScript::TakeState(uint32_t c) {
  Line& line = lines_[c];
  return line.next_state < line.states.size() ? line.states[line.next_state++] : 0;
}

std::string ConnectionScript::Close(uint32_t c) {
  Line& line = lines_[c];
  if (line.closed) return {};
  std::string difference;
  const uint64_t recorded = line.out.empty() ? 0 : line.out.back().end;
  if (line.sent < recorded)
    difference =
        Differs(c, "the program closes it after sending " + std::to_string(line.sent) + " of the " +
                       std::to_string(recorded) + " bytes that the recorded run sent there");
  line.closed = true;
  left_ -= line.in.size() - line.next_in;
  line.next_in = line.in.size();
  Advance(c);
  return difference;
}

std::vector<uint32_t> ConnectionScript::TakeReleased() {
  std::vector<uint32_t> released;
  released.swap(released_);
  return released;
}

bool ConnectionScript::Relax() {
  Line* first = nullptr;
  for (Line& line : lines_) {
    if (line.next_in >= line.in.size() || line.next_in < line.relaxed || !HasSentEnough(line))
      continue;
    const Chunk& chunk = line.in[line.next_in];
    if (threads_[chunk.thread].made == chunk.step) continue;  // is due, and not yet taken
    if (first == nullptr || chunk.time_ns < first->in[first->next_in].time_ns) first = &line;
  }
  if (first == nullptr) return false;
  first->relaxed = first->next_in + 1;
  released_.push_back(static_cast<uint32_t>(first - lines_.data()));
  return true;
}

std::string ConnectionScript::Force(uint32_t c) {
  Line& line = lines_[c];
  if (line.next_in >= line.in.size() || HasSentEnough(line)) return {};
  const uint64_t wanted = line.in[line.next_in].sent_before;
  line.forced = line.relaxed = line.next_in + 1;
  released_.push_back(c);
  return Differs(c, "the program has sent " + std::to_string(line.sent) +
                        " bytes and waits; the recorded run had sent " + std::to_string(wanted) +
                        " before it got its answer, which is served all the same");
}

}  // namespace deja::replayer

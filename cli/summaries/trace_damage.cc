#include "cli/summaries/trace_damage.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "cli/output.h"

namespace deja::cli {

namespace {

// The checksums are all that is wanted, those of the index, too. A sentence for the first damage.
std::string DamageFound(format::EventCursor& cursor) {
  constexpr uint64_t kNoKind = 0;
  while (cursor.NextOf(kNoKind) != nullptr) {
  }
  if (cursor.damage().empty()) return {};
  return cursor.damage() + (cursor.damaged_batches() != 0
                                ? "; the result leaves that part out"
                                : "; it is outside the events, of which none is lost");
}

}  // namespace

std::string FindEventDamage(const format::RankReader& reader) {
  if (reader.end().state == format::EndState::kCorrupt)
    return reader.end().detail + "; the result leaves that part out";
  return DamageFound(*reader.Events());
}

std::string FindOtherDamage(const format::RankReader& reader) {
  return DamageFound(*reader.EventsFromBatch(reader.batches().size()));
}

uint64_t FirstLostTime(const format::RankReader& reader) {
  if (reader.end().state == format::EndState::kCorrupt) return 0;
  uint64_t first = UINT64_MAX;
  for (size_t batch = 0; batch < reader.batches().size(); ++batch) {
    const auto cursor = reader.EventsOfBatch(batch);
    (void)DamageFound(*cursor);
    if (cursor->damaged_batches() != 0)
      first = std::min(first, reader.batches()[batch].first_time_ns);
  }
  return first;
}

std::vector<std::string> FindEventDamage(const std::vector<const format::RankReader*>& readers) {
  constexpr size_t kRanksAThread = 2;
  std::vector<std::string> damage(readers.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < readers.size(); i = next++)
      damage[i] = FindEventDamage(*readers[i]);
  };
  std::vector<std::thread> threads;
  const size_t helpers =
      std::min<size_t>(std::thread::hardware_concurrency(), readers.size() / kRanksAThread);
  for (size_t i = 1; i < helpers; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return damage;
}

void SayDamaged(const std::string& who, const std::string& damage) {
  Diagnose(
      fmt::format("{}: its recording is DAMAGED: {}; `deja verify` lists all damage", who, damage));
}

std::vector<std::pair<std::string, const format::RankReader*>> ReadableChildren(
    format::Trace& trace, uint32_t rank, int attempt) {
  std::vector<std::pair<std::string, const format::RankReader*>> readable;
  const auto children = trace.Children(rank, attempt);
  if (!children) return readable;
  for (const format::ChildFolder& child : *children)
    if (const auto reader = trace.Process(child)) readable.emplace_back(child.name, *reader);
  return readable;
}

bool SayIfDamaged(format::Trace& trace) {
  std::vector<const format::RankReader*> readers;
  std::vector<std::string> names;
  for (const format::RankFolder& folder : trace.ranks()) {
    const auto attempt = static_cast<int>(folder.attempt);
    const std::string name = fmt::format(
        "{}: rank {}{}", trace.path(), folder.rank,
        folder.attempt == 0 ? std::string() : fmt::format(", attempt {}", folder.attempt));
    if (const auto reader = trace.Rank(folder.rank, attempt)) {
      readers.push_back(*reader);
      names.push_back(name);
    }
    for (const auto& [child, reader] : ReadableChildren(trace, folder.rank, attempt)) {
      readers.push_back(reader);
      names.push_back(fmt::format("{}, child {}", name, child));
    }
  }
  const std::vector<std::string> damage = FindEventDamage(readers);
  bool any = false;
  for (size_t i = 0; i < damage.size(); ++i) {
    if (damage[i].empty()) continue;
    SayDamaged(names[i], damage[i]);
    any = true;
  }
  return any;
}

bool SayIfDamaged(format::Trace& a, format::Trace& b) {
  const bool is_first = SayIfDamaged(a);
  return (a.path() != b.path() && SayIfDamaged(b)) || is_first;
}

}  // namespace deja::cli

#include "cli/summaries/trace_damage.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>

#include "cli/output.h"

namespace deja::cli {

std::string FindEventDamage(const format::RankReader& reader) {
  if (reader.end().state == format::EndState::kCorrupt) return reader.end().detail;
  const auto cursor = reader.Events();
  constexpr uint64_t kNoKind = 0;  // the checksums are all that is wanted
  while (cursor->NextOf(kNoKind) != nullptr) {
  }
  return cursor->damage();
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
      fmt::format("{}: its recording is DAMAGED: {}; the result leaves that part out; "
                  "`deja verify` lists all damage",
                  who, damage));
}

bool SayIfDamaged(format::Trace& trace) {
  std::vector<const format::RankReader*> readers;
  std::vector<std::string> names;
  for (const format::RankFolder& folder : trace.ranks()) {
    const auto reader = trace.Rank(folder.rank, static_cast<int>(folder.attempt));
    if (!reader) continue;
    readers.push_back(*reader);
    names.push_back(fmt::format(
        "{}: rank {}{}", trace.path(), folder.rank,
        folder.attempt == 0 ? std::string() : fmt::format(", attempt {}", folder.attempt)));
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

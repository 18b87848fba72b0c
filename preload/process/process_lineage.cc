#include "preload/process/process_lineage.h"

#include <charconv>
#include <cstdio>

#include "common/process/proc_stat.h"
#include "preload/process/guard.h"

namespace deja::preload {
namespace {

constexpr int kMaxDepth = 64;

// 0: not known.
int ParentOf(int pid) {
  const Guard guard;
  return ReadProcStat(pid).parent;
}

}  // namespace

bool DescendsFrom(int pid, int ancestor) {
  for (int depth = 0; depth < kMaxDepth && pid > 1; ++depth) {
    if (pid == ancestor) return true;
    pid = ParentOf(pid);
  }
  return false;
}

std::string_view WriteLineage(int pid, int ancestor, std::span<char> out) {
  size_t size = 0;
  for (int depth = 0; depth < kMaxDepth && pid > 1; ++depth) {
    const int n = snprintf(out.data() + size, out.size() - size, size == 0 ? "%d" : " %d", pid);
    if (n <= 0 || size + static_cast<size_t>(n) >= out.size()) return {};
    size += static_cast<size_t>(n);
    if (pid == ancestor) return {out.data(), size};
    pid = ParentOf(pid);
  }
  return {};
}

bool LineageHas(std::string_view lineage, int pid) {
  while (!lineage.empty()) {
    int listed = 0;
    const auto [end, error] =
        std::from_chars(lineage.data(), lineage.data() + lineage.size(), listed);
    if (error != std::errc()) return false;
    if (listed == pid) return true;
    lineage.remove_prefix(static_cast<size_t>(end - lineage.data()));
    if (!lineage.empty()) lineage.remove_prefix(1);
  }
  return false;
}

}  // namespace deja::preload

// Children: which recording belongs to which process of the replayed rank, and which live process a
// recorded pid means.
//
// Any thread, and safe across fork at any moment: nothing here holds a lock.
#ifndef DEJA_REPLAYER_FORKS_CHILDREN_H_
#define DEJA_REPLAYER_FORKS_CHILDREN_H_

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace deja::replayer {

// The folder of `name` in the list `path` (format/scratch/process_list.h); empty: none.
std::string FindListed(const std::string& path, std::string_view name);
// Folder of the recording of the rank's child `name` ("0/1+1"); empty if there is none. `deja
// replay` has listed them in the scratch folder.
std::string FindChildFolder(const std::string& scratch, std::string_view name);
// True if the process is, or belongs to, another rank.
bool IsOtherRank(const std::string& scratch, std::string_view name);
// The folders of all children.
std::vector<std::string> ChildFolders(const std::string& scratch);

// Recorded and live pids of the processes that this one knows: those it has made, and its parent.
// A fork child inherits the list. The newest entry counts, since numbers come again.
class PidMap {
 public:
  // `is_live`: it becomes a program that is not recorded, and runs live.
  void Add(int recorded, int live, bool is_live = false);
  // 0: not known.
  [[nodiscard]] int Live(int recorded) const;
  [[nodiscard]] int Recorded(int live) const;
  // The process has been waited for: it is gone.
  void SetGone(int live);
  [[nodiscard]] bool IsGone(int recorded) const;
  [[nodiscard]] bool IsLive(int recorded) const;

 private:
  static constexpr size_t kEntries = 4096;
  struct Entry {
    std::atomic<int> recorded{0};
    std::atomic<int> live{0};
    std::atomic<bool> gone{false};
    std::atomic<bool> is_live{false};
  };
  template <typename Match>
  const Entry* Find(Match match) const;

  Entry entries_[kEntries];
  std::atomic<size_t> next_{0};
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FORKS_CHILDREN_H_

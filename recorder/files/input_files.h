// InputFiles: what the program reads of files outside the run: InputFile and FileRead events.
//
// Which files: common/input_rule.h, less those that the run has written itself, the trace and the
// program's own executable. A file is known by path, device, inode, size and time of its last
// change; in another state it is another input. At `digest` ranges are hashed as the program gets
// them; at `full` their bytes are kept as payloads, too. What has been recorded of a file once is
// not recorded again (seen_pages.h).
//
// Where bytes are kept, symbolic links are files of their own. Their targets are recorded with each
// state. A state of a link counts the looks at it before, as the state of a file counts opens.
//
// A file that existed before and is opened for writing is recorded as a whole at that open. What is
// read afterwards may be the run's own. A file that another process has changed during the run is
// recorded as a whole, too, with its bytes (own_files.h).
//
// A name that is not there is an input at `digest`, too. Another rank of the run may make it later,
// and a replay must not find it. What is there is looked at as it is.
//
// One per Recording. Any thread, inside the guard; no lock is held across a real call; memory
// straight from the kernel. A forked process records again what it reads by descriptors that it
// inherited.
#ifndef DEJA_RECORDER_FILES_INPUT_FILES_H_
#define DEJA_RECORDER_FILES_INPUT_FILES_H_

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#include "common/input_rule.h"
#include "common/runtime/spin_lock.h"
#include "format/wire/messages.h"
#include "preload/calls/file_calls.h"
#include "preload/engine/fd_table.h"
#include "recorder/core/config.h"
#include "recorder/events/mapped_memory.h"
#include "recorder/files/program_files.h"
#include "recorder/files/seen_pages.h"

namespace deja::recorder {

class OpenedInput;
class OwnFile;
class Recording;

// A file in one state, as this process knows it. Never freed.
struct KnownFile {
  uint32_t number = 0;
  uint32_t generation = 0;  // of processes: another one's after a fork
  std::string_view path;
  struct stat info {};
  SeenPages seen;
  Recording* windowed = nullptr;          // what is kept of it may be dropped; null: nothing is
  std::atomic<uint32_t> seen_segment{0};  // where what `seen` says is kept
  int error = 0;
  uint64_t entries = 0;               // a hash of a folder's
  bool may_change = false;            // so young that a change would not show in its times
  bool others = false;                // another process changed it during the run
  std::atomic<bool> is_whole{false};  // all that it held has been recorded

  // True if all of [begin, end) has been recorded. Where there is a window, it must also be kept in
  // the segment that is being filled, so that later ones need no older one.
  [[nodiscard]] bool Knows(uint64_t begin, uint64_t end) const {
    return seen.Covers(begin, end) &&
           (windowed == nullptr || seen_segment.load(std::memory_order_relaxed) == Segment());
  }
  // [begin, end) has been recorded; `segment`: as Segment() was before.
  void Learn(uint64_t begin, uint64_t end, uint32_t segment);
  // The one that is being filled; 0 where there is no window.
  [[nodiscard]] uint32_t Segment() const;
};

// Numbers that may be in a set: never says no of one that was added. Any thread, no lock.
class MaybeSet {
 public:
  void Add(uint64_t hash) { Word(hash).fetch_or(Bit(hash), std::memory_order_relaxed); }
  [[nodiscard]] bool MayHave(uint64_t hash) {
    return (Word(hash).load(std::memory_order_relaxed) & Bit(hash)) != 0;
  }

 private:
  static constexpr size_t kWords = 1024;
  static uint64_t Bit(uint64_t hash) { return uint64_t{1} << (hash % 64); }
  std::atomic<uint64_t>& Word(uint64_t hash) { return words_[hash / 64 % kWords]; }

  std::atomic<uint64_t> words_[kWords] = {};
};

// What more there is to say about a file.
struct FileNews {
  int error = 0;  // it is not there
  bool written = false;
  bool program = false;      // what program_files.h records
  bool others = false;       // another process changed it during the run
  bool looked = false;       // a look met it, which is counted
  std::string_view entries;  // of a folder; of a symbolic link, what it says
};

class InputFiles {
 public:
  // `config` stays where it is.
  explicit InputFiles(const Config& config);

  // As preload::Engine::OnOpened.
  preload::FdObject* Opened(Recording& rec, int dirfd, const char* path, int fd, int flags);
  // The program is about to open a name. What others had changed may be gone.
  void Opening(Recording& rec, int dirfd, const char* path);
  // The program could not make a file of its own there: one of others, since the run began, is.
  void Taken(Recording& rec, int dirfd, const char* path);
  // The program asks about a name, or is about to open it. Where inputs are kept in full, the
  // answer is recorded. A file that does not exist and is created will be the run's own.
  void Looked(Recording& rec, int dirfd, const char* path, preload::FileUse use);
  // The system has answered (FileCalls::OnAnswered). Where only digests are kept, a name that is
  // not there is recorded, and the look that finds it there.
  void Answered(Recording& rec, int dirfd, const char* path, preload::FileUse use, int error);
  // As Looked, of the name itself, if it is a symbolic link or nothing; false if it is a file.
  bool LookedAtLink(Recording& rec, int dirfd, const char* path);
  // The same of all links on the way, and of where they lead.
  void Resolved(Recording& rec, int dirfd, const char* path);
  // Files and folders with this name are inputs.
  [[nodiscard]] bool Wants(std::string_view path) const {
    return config_.inputs != InputMode::kOff && IsInput(path);
  }
  // The program lists a folder.
  void Folder(Recording& rec, std::string_view path, const struct stat& info,
              std::string_view entries);
  // What stands for `info` under `path` from now on; writes its InputFile event if it is new.
  KnownFile* Know(Recording& rec, std::string_view path, const struct stat& info, bool opens,
                  const FileNews& what = {});
  // Finishes everything that is being read: the process ends, or is replaced.
  static void FinishAll(Recording& rec);
  // The same in a signal handler, as far as that is possible.
  static void FinishInSignal(Recording& rec);

  [[nodiscard]] bool keeps_bytes() const { return config_.inputs == InputMode::kFull; }

 private:
  struct PathRecord {
    uint64_t opens = 0;
    uint64_t tries = 0;
    uint64_t looks = 0;  // that did not open it
    KnownFile* last = nullptr;
    bool is_created = false;
    bool was_missing = false;  // for a look at links
    bool is_missed = false;    // with digests: it was not there; its looks are counted
    bool is_removed = false;   // with digests: the program removed it
    bool is_shared = false;    // others have changed the file during the run
  };

  [[nodiscard]] bool IsInput(std::string_view path) const;
  bool IsOfOthers(const Recording& rec, const struct stat& info, const OwnFile* own);
  // `file`: null: only its position is followed.
  static OpenedInput* Begin(KnownFile* file, uint64_t key, uint32_t open);
  // What is known of `path`; null if there is no more room. With the lock held.
  PathRecord* RecordOf(std::string_view path, bool is_link);
  // The same of a name that is no link itself, if anything is known of it.
  PathRecord* FindRecord(std::string_view path);
  void CountLook(std::string_view path);
  // For Answered. What has become of a name: at most one is true, but for `looks`.
  struct Answer {
    bool looks = false;
    bool removes = false;
    bool misses = false;
  };
  // Whether the answer is news; counts its look. With the lock held.
  bool IsNews(PathRecord& record, const Answer& answer);
  // The run has made the symbolic link `name`, which it gave as `path`.
  bool IsOwnLink(std::string_view name, int dirfd, const char* path);
  void RecordWhole(Recording& rec, KnownFile& file, int fd);
  std::string_view Keep(std::string_view path);
  // How often the process had opened the path, or asked about it.
  struct Place {
    uint64_t opens = 0;
    uint64_t tries = 0;
    uint64_t looks = 0;
  };
  static void Announce(Recording& rec, const KnownFile& file, const Place& place,
                       const FileNews& what);

  const Config& config_;
  const InputRule rule_;
  ProgramFiles program_files_;
  SpinLock lock_;  // of what follows
  KeyMap paths_;
  StableArray<PathRecord, 1024, 2048> records_;
  StableArray<KnownFile, 256, 8192> files_;
  std::atomic<uint64_t> kept_of_others_{0};  // bytes
  uint32_t missed_ = 0;                      // names, with digests
  uint32_t removed_ = 0;
  MaybeSet maybe_missed_;  // by the last parts of their names
  uint32_t next_record_ = 0;
  char* text_ = nullptr;
  size_t text_left_ = 0;
};

// Which process of a tree of forks this is: KnownFile::generation.
uint32_t InputGeneration();
// Around forks: the child's descriptors lead to what its parent was reading.
void BeforeForkOfInputs();
void AfterForkOfInputsInChild();
// Nothing shows that the file was changed between these two looks at it.
bool IsSameState(const struct stat& a, const struct stat& b);

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_FILES_INPUT_FILES_H_

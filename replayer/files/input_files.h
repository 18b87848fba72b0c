// InputServer: files that the recorded run read, as a replay meets them.
//
// Where the recording has digests, the first open of such a file compares. All that the recorded
// run read of it must equal what is there, before the program gets a byte of it. A file that is
// missing, shorter or another is a divergence that names file and range. Files that the program has
// written itself (they are in the overlay) are not compared.
//
// Where the recording has their bytes, files come from the trace. The first look at one makes a
// file of its size, time and mode below the scratch folder. The first open puts the recorded ranges
// into it (it is sparse: the rest costs nothing). What was not there is not there now. Folders are
// listed as they were, with digests too.
//
// What another process changed while the run went on has its bytes in each recording: the overlay
// gets them with the open that met them.
//
// Owner: the engine. Any thread, inside the guard.
#ifndef DEJA_REPLAYER_FILES_INPUT_FILES_H_
#define DEJA_REPLAYER_FILES_INPUT_FILES_H_

#include <sys/stat.h>

#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "format/scratch/created_names.h"
#include "preload/calls/file_calls.h"
#include "replayer/core/session.h"
#include "replayer/files/overlay.h"

namespace deja::replayer {

class InputServer {
 public:
  // A name that was not there before a process of the rank made it.
  struct Created {
    uint64_t time_ns = 0;    // when first
    bool was_there = false;  // earlier, until the run removed it
  };

  // Which names the recorded run made; `by_others`: those of the rank's other processes. Before
  // any of the calls below, and without another thread.
  void LearnCreated(const ReplayPlan& plan, const std::vector<format::CreatedName>& by_others);
  [[nodiscard]] const std::map<std::string, Created, std::less<>>& created() const {
    return created_;
  }

  // The recording's name for `path`, an absolute one: with the recorded working directory in place
  // of this one's if `is_relative`.
  static std::string NameOf(const Session& session, std::string_view path, bool is_relative);

  // With digests: the program is about to open `name`; `path` and `dirfd` are what it gave.
  void Check(Session& session, ThreadState& thread, std::string_view name, int dirfd,
             const char* path);

  // The program is about to open `name`: if another process had changed it by then, the overlay has
  // what the recorded run met. False, with errno set: another process had made it, and the recorded
  // run could not.
  bool Renew(Session& session, Overlay& overlay, std::string_view name);

  // The recorded run did not find `name` here; errno is set.
  bool IsMissing(Session& session, std::string_view name, preload::FileUse use);

  // With digests: what to look at for `name`, which is `path`, relative to `dirfd`. A file that the
  // recorded run found, after it had been missing, may be gone by now.
  const char* MapFound(Session& session, std::string_view name, int dirfd, const char* path,
                       std::span<char> buffer);

  // With bytes: where `name` is to be read or looked at; `path` if the recording does not know it;
  // null with errno set if it was not there.
  const char* Map(Session& session, std::string_view name, preload::FileUse use, const char* path,
                  std::span<char> buffer);
  // With bytes: the same of the name itself, if that was a symbolic link or nothing; false: it was
  // a file, or the recording does not know it.
  bool MapLink(Session& session, std::string_view name, std::span<char> buffer,
               const char*& mapped);
  // With bytes: `name` with the recorded links on its way followed.
  std::string Resolve(Session& session, const std::string& name);
  // With bytes: the program's answer about `name`, a link itself if `info` says so.
  void Describe(Session& session, std::string_view name, struct stat& info);
  // With bytes: the program has made the file of `info` in the replay. It may have the number of a
  // recorded file that is gone by now, and the program would take the two for one.
  void TellApart(const Session& session, struct stat& info);
  // With bytes: `name` is about to be changed. The overlay gets what it was.
  void PrepareChange(Session& session, Overlay& overlay, const std::string& name);

  // Whether the next look at the link `name` meets one, or nothing.
  bool IsLinkNext(Session& session, std::string_view name);
  // Whether the recorded run found anything about `name` but what it had made itself, or what
  // others had changed during the run (Renew).
  bool Knows(const Session& session, std::string_view name) const;
  // The program is about to ask about `name`, or has opened nothing there.
  void CountLook(const Session& session, std::string_view name);
  // The program has opened `name`. True if the recording knows it.
  bool CountOpen(Session& session, std::string_view name);
  // What the folder `name` held; false if the recording does not say.
  bool Entries(Session& session, std::string_view name, std::string& entries);
  // In a child with a recording of its own: what it read by descriptors of its parent's.
  void FillInherited(Session& session);

  // The recorded number of the file `name` (of a link: its own), as it is now; 0: not recorded.
  uint64_t Inode(Session& session, std::string_view name);

  // Whether the recording keeps the bytes of inputs.
  static bool HasBytes(const Session& session) { return session.plan().kept_inputs == 3; }

 private:
  // What the run has made is in the overlay, once the program has made it again.
  enum class Made : unsigned char { kLeftOut, kCounts };
  // What the program does with a name: a look counts, an open is counted when it has succeeded.
  enum class Met : unsigned char { kByOpen, kByLook };
  // `name` in the state in which the recorded run's n-th open met it, or its last look.
  const RecordedFile* Find(Session& session, std::string_view name, Met met = Met::kByOpen,
                           Made made = Made::kLeftOut);
  // It was recorded when the run had made that name.
  [[nodiscard]] bool IsMadeByRun(const RecordedFile& file) const;
  // The link `name`, as the recorded run's n-th look met it; `counts` if this is one.
  const RecordedFile* FindLink(Session& session, std::string_view name, bool counts);
  // Where the file is, below the scratch folder; empty if it cannot be made.
  std::string Make(Session& session, const RecordedFile& file, bool with_content);
  static bool Fill(Session& session, const RecordedFile& file, const std::string& path);

  std::map<std::string, Created, std::less<>> created_;
  std::mutex mutex_;
  std::map<std::string, uint64_t, std::less<>> opens_;
  std::map<std::string, uint64_t, std::less<>> looks_;
  std::map<std::string, uint64_t, std::less<>> looks_at_links_;
  std::map<std::string, uint64_t, std::less<>> tries_;  // to open
  std::set<uint32_t> checked_;                          // numbers of files
  std::set<uint32_t> renewed_;                          // the same
  std::map<uint32_t, bool> made_;                     // numbers of files; true: with their content
  std::set<std::pair<uint64_t, uint64_t>> recorded_;  // their devices and inodes; empty: not known
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FILES_INPUT_FILES_H_

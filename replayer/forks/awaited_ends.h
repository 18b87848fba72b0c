// What processes of a replay say to each other about their ends.
//
// One that a signal ended waits for the signal at the end of its recording, as another process of
// the rank may send it. That one waits until it is there. A signal from outside does not come in a
// replay. So a process that waits for the end, at a place where the recorded one found it, says
// that none will.
//
// Files in the scratch folder. Any thread, within the guard; no errors: what is not known costs a
// wait of some seconds.
#ifndef DEJA_REPLAYER_FORKS_AWAITED_ENDS_H_
#define DEJA_REPLAYER_FORKS_AWAITED_ENDS_H_

#include <string>

namespace deja::replayer {

// In its scope, the end of process `pid` of the replay in `scratch` is awaited.
class AwaitedEnd {
 public:
  AwaitedEnd(const std::string& scratch, int pid);
  ~AwaitedEnd();
  AwaitedEnd(const AwaitedEnd&) = delete;
  AwaitedEnd& operator=(const AwaitedEnd&) = delete;

 private:
  std::string path_;
};

bool IsEndAwaited(const std::string& scratch, int pid);

// Child `pid` of the calling process has ended, or is none of its; it stays to be waited for.
bool HasChildEnded(int pid);

// The calling process has made all events of its recording, or has none; or, under the same number,
// another program has begun to make its own.
void SayAllMade(const std::string& scratch, bool is_made);
bool HasMadeAll(const std::string& scratch, int pid);

// The calling process exits as it says in its recording. A signal may have ended the recorded one
// while it did.
void SayExits(const std::string& scratch, bool exits);
bool HasExited(const std::string& scratch, int pid);

// The end of the calling process is not to be compared. It becomes a program that is not recorded
// (static, or of Go), and runs live; or, under the same number, one that has a recording.
void SayRunsLive(const std::string& scratch, bool runs_live);
bool RunsLive(const std::string& scratch, int pid);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FORKS_AWAITED_ENDS_H_

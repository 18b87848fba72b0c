// Which process of the replay will make which acquisition of a semaphore, for those that wait for
// one. Each process writes a file of its own into the scratch folder when it begins. A process that
// has waited for long reads them.
//
// Any thread, within the guard.
#ifndef DEJA_REPLAYER_MEET_MEETING_LIST_H_
#define DEJA_REPLAYER_MEET_MEETING_LIST_H_

#include <cstdint>
#include <string>

namespace deja::replayer {

class Session;

// This process's acquisitions, by the plan of its session. One that makes none says that it is
// there: what it does is something that moves.
void AnnounceMeetings(const Session& session);

bool HasAnnouncedMeetings(const std::string& scratch, int pid);

struct MeetingOwner {
  int pid = 0;  // 0: no process of the replay has said that it makes it
  bool gone = false;
  std::string name;  // of the process, as children are named; "the rank"
};
// The process that makes acquisition `number` of the semaphore `key`. `scratch`: the replay's
// scratch folder.
MeetingOwner OwnerOfMeeting(const std::string& scratch, uint64_t key, uint32_t number);

// Processor time, in ns; 0: there is no such process.
uint64_t TimeUsedBy(int pid);
// The same of all processes that have announced themselves.
uint64_t TimeUsedByAll(const std::string& scratch);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_MEET_MEETING_LIST_H_

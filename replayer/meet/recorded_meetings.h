// What a thread's recording has of meetings, in order, for the servers of them (meetings.h).
//
// The calling thread's own state; any thread.
#ifndef DEJA_REPLAYER_MEET_RECORDED_MEETINGS_H_
#define DEJA_REPLAYER_MEET_RECORDED_MEETINGS_H_

#include <cstdint>
#include <span>
#include <string>

#include "api/libc_table.h"
#include "replayer/plan/replay_plan.h"

namespace deja::replayer {

class Session;
struct ThreadState;

// A replay from a checkpoint, which begins in the middle, keeps no order.
bool KeepsOrder(const Session& session);
// The thread's next meeting of this kind; null: it has made all that it made.
const RecordedInput* NextMeeting(Session& session, ThreadState& thread, api::LibcApi api,
                                 uint64_t key);
// All that the recorded thread made of this kind: places in the plan's inputs.
std::span<const uint32_t> MeetingsOf(Session& session, const ThreadState& thread, api::LibcApi api,
                                     uint64_t key);
// It made any.
bool MadeMeetings(Session& session, const ThreadState& thread, api::LibcApi api, uint64_t key);
// It has made that one.
void ConsumeMeeting(Session& session, ThreadState& thread, api::LibcApi api, uint64_t key);
// The recorded order cannot be kept.
void DivergeAtMeeting(Session& session, ThreadState& thread, const char* api, std::string what);

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_MEET_RECORDED_MEETINGS_H_

// Names in the scratch folder of a replay of which one child alone is shown (deja replay --child).
#ifndef DEJA_COMMON_REPLAY_OUTPUTS_H_
#define DEJA_COMMON_REPLAY_OUTPUTS_H_

namespace deja {

// FIFOs by number of descriptor, 1 and 2. The rank starts with the first pair, whose bytes are
// dropped; the child puts the second pair in its place.
inline constexpr const char* kDroppedOutputs[] = {"/dropped-stdout", "/dropped-stderr"};
inline constexpr const char* kShownOutputs[] = {"/shown-stdout", "/shown-stderr"};

// The process number of the child, which waits until a debugger is attached to it.
inline constexpr char kWaitsForDebugger[] = "/waits-for-debugger";

}  // namespace deja

#endif  // DEJA_COMMON_REPLAY_OUTPUTS_H_

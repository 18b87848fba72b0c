// The table of the C library's hooked functions.
//
// Constants; any thread, signal handlers too.
#ifndef DEJA_API_LIBC_TABLE_H_
#define DEJA_API_LIBC_TABLE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "api/roles.h"

namespace deja::api {

// Ids as names: `switch (static_cast<LibcApi>(call.api)) { case LibcApi::kgetrandom: …`. With a k,
// because some of the names are macros.
enum class LibcApi : uint32_t {
#define DEJA_FN(id, result, name, since, klass, kind) k##name = kLibcFamily + (id),
#include "api/tables/libc.def"
#undef DEJA_FN
};

// What an input is, and with it how it is replayed.
enum class InputKind : uint8_t {
  kNone,         // no input by itself; calls of it are never handed over as one
  kEntropy,      // the same bytes in the same order
  kClock,        // the recorded values, then on from there
  kIdentity,     // one value for each question
  kMachineFile,  // a file about the machine, by its name
  kCreated,      // a name that was not there before the program made it
  kMeasure,      // the recorded values of each question in order, then the last one again
  kMeeting,      // where the rank's processes meet: in the recorded order
  kPosition,     // where a file stood that several processes have open together
  kMpi,          // MPI's clock, and what it said of types and communicators
};

// All rows, by id.
std::span<const ApiInfo> LibcTable();
// The row with this id or name, or null.
const ApiInfo* FindLibc(uint32_t id);
const ApiInfo* FindLibc(std::string_view name);
// For ids of inputs (InputCall::api): the column of the row, or kMpi. kNone for an id that no table
// has, such as one of a later Deja.
InputKind InputKindOf(uint32_t id);
// Calls that ask a name server, unless the answer is known.
bool AsksForName(uint32_t id);

}  // namespace deja::api

#endif  // DEJA_API_LIBC_TABLE_H_

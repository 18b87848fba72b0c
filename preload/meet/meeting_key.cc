#include "preload/meet/meeting_key.h"

#include "preload/process/process_name.h"
#include "preload/process/threads.h"

namespace deja::preload {
namespace {

thread_local uint32_t t_made = 0;

uint64_t Mix(uint64_t hash, uint64_t value) {
  return (hash ^ value) * 0x9e3779b97f4a7c15u;
}

}  // namespace

uint64_t NewMeetingKey() {
  const ProcessName& process = OwnProcessName();
  const int pid = process.recorded_pid != 0 ? process.recorded_pid : process.pid;
  uint64_t hash = Mix(0xcbf29ce484222325u, static_cast<uint64_t>(pid));
  for (const char* c = Self().name; *c != '\0'; ++c) hash = Mix(hash, static_cast<uint8_t>(*c));
  hash = Mix(hash, ++t_made);
  return (hash ^ hash >> 29) | 1;
}

}  // namespace deja::preload

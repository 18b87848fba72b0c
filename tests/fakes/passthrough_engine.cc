// The smallest engine: makes every call and changes nothing. With it the hooks can be tested by
// themselves.
//
// DEJA_TEST_CALLS=file: a line "name" is appended to the file for each call that the hooks hand
// over.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "preload/engine/engine.h"
#include "tests/support/every_call.h"

namespace deja::preload {
namespace {

class PassthroughEngine final : public EveryCall {
 public:
  explicit PassthroughEngine(const char* path)
      : fd_(path != nullptr ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1) {}

  void OnNcclCall(Call& call) override {
    Note(call.info->name);
    call.invoke(call);
  }
  void OnCurandCall(Call& call) override {
    Note(call.info->name);
    call.invoke(call);
  }
  void OnInput(InputCall& call) override { call.Real(); }
  uint64_t OnStep(uint64_t step) override {
    Note("step");
    return step;
  }
  void OnNote(std::string_view) override { Note("note"); }
  void OnSnapshot(const SnapshotCall&) override { Note("snapshot"); }
  void OnThreadStart() override {}
  void OnThreadEnd() override {}
  void OnCrash(int, const siginfo_t*, void*) override {}
  void OnExit(int, ExitHow) override {}
  void OnForkChild() override { Note("child"); }
  const char* MapPath(int, const char* path, FileUse, std::span<char>) override { return path; }
  bool MayConnect(int, const void*, uint32_t) override { return true; }
  bool MayKill(int, int) override { return true; }

 private:
  void Note(const char* what) {
    if (fd_ < 0) return;
    char line[64];
    size_t n = strnlen(what, sizeof line - 1);
    std::memcpy(line, what, n);
    line[n] = '\n';
    // One write a line, so that lines of several threads stay whole.
    if (write(fd_, line, n + 1) < 0) fd_ = -1;
  }

  int fd_;
};

}  // namespace

bool CreateEngine(Engine& engine) {
  alignas(PassthroughEngine) static char memory[sizeof(PassthroughEngine)];
  engine = EngineOf(*new (memory) PassthroughEngine(getenv("DEJA_TEST_CALLS")));
  return true;
}

}  // namespace deja::preload

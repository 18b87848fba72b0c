// The user of the process: ids, and what the user data base says about them.
//
// Entries of the data base are recorded as bytes. uid and gid come first (4 bytes each), then name,
// password, full name, home folder and shell, each ended by a zero. The password is never stored:
// where there is one it is "x", as in a shadow file's place.
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<uid_t (*)()> real_getuid{"getuid"};
constinit RealFn<uid_t (*)()> real_geteuid{"geteuid"};
constinit RealFn<gid_t (*)()> real_getgid{"getgid"};
constinit RealFn<gid_t (*)()> real_getegid{"getegid"};
constinit RealFn<int (*)(int, gid_t*)> real_getgroups{"getgroups"};
constinit RealFn<char* (*)()> real_getlogin{"getlogin"};
constinit RealFn<int (*)(char*, size_t)> real_getlogin_r{"getlogin_r"};
constinit RealFn<passwd* (*)(uid_t)> real_getpwuid{"getpwuid"};
constinit RealFn<passwd* (*)(const char*)> real_getpwnam{"getpwnam"};
constinit RealFn<int (*)(uid_t, passwd*, char*, size_t, passwd**)> real_getpwuid_r{"getpwuid_r"};
constinit RealFn<int (*)(const char*, passwd*, char*, size_t, passwd**)> real_getpwnam_r{
    "getpwnam_r"};

// More than any entry that is not broken.
constexpr size_t kEntryBytes = 4096;

struct EntryStrings {
  const char* of[5];
};

EntryStrings StringsOf(const passwd& entry) {
  return {{entry.pw_name, entry.pw_passwd, entry.pw_gecos, entry.pw_dir, entry.pw_shell}};
}

// Bytes written to `out`; 0 if it does not fit.
size_t Pack(const passwd& entry, std::span<std::byte> out) {
  constexpr size_t kIds = sizeof entry.pw_uid + sizeof entry.pw_gid;
  if (out.size() < kIds) return 0;
  memcpy(out.data(), &entry.pw_uid, sizeof entry.pw_uid);
  memcpy(out.data() + sizeof entry.pw_uid, &entry.pw_gid, sizeof entry.pw_gid);
  size_t at = kIds;
  EntryStrings strings = StringsOf(entry);
  if (strings.of[1] != nullptr && strlen(strings.of[1]) > 1) strings.of[1] = "x";
  for (const char* text : strings.of) {
    if (text == nullptr) text = "";
    const size_t size = strlen(text) + 1;
    if (at + size > out.size()) return 0;
    memcpy(out.data() + at, text, size);
    at += size;
  }
  return at;
}

// False if `buffer` is too small, or the bytes are no entry.
bool Unpack(std::span<const std::byte> packed, passwd& entry, std::span<char> buffer) {
  constexpr size_t kIds = sizeof entry.pw_uid + sizeof entry.pw_gid;
  if (packed.size() < kIds || packed.size() - kIds > buffer.size()) return false;
  memcpy(&entry.pw_uid, packed.data(), sizeof entry.pw_uid);
  memcpy(&entry.pw_gid, packed.data() + sizeof entry.pw_uid, sizeof entry.pw_gid);
  const size_t size = packed.size() - kIds;
  memcpy(buffer.data(), packed.data() + kIds, size);
  char* at = buffer.data();
  char* end = at + size;
  for (char** field :
       {&entry.pw_name, &entry.pw_passwd, &entry.pw_gecos, &entry.pw_dir, &entry.pw_shell}) {
    char* zero = std::find(at, end, '\0');
    if (zero == end) return false;
    *field = at;
    at = zero + 1;
  }
  return true;
}

// As the reentrant functions: `look_up(entry, buffer, size, found)` is the real one. The input's
// result is the size of the entry, 0 if there is none.
template <typename LookUp>
int TakeEntry(Engine& engine, api::LibcApi api, uint64_t key, passwd& entry, std::span<char> buffer,
              passwd** result, LookUp look_up) {
  std::byte packed[kEntryBytes];
  const int64_t size =
      TakeInput(engine, api, key, BytesOf(packed, sizeof packed), [&](InputCall& call) {
        char text[kEntryBytes];
        passwd live{};
        passwd* found = nullptr;
        const int error = look_up(&live, text, sizeof text, &found);
        call.produced = error == 0 && found != nullptr ? Pack(live, call.out) : 0;
        call.result = error != 0 ? -1 : static_cast<int64_t>(call.produced);
        errno = error != 0 ? error : errno;
      });
  *result = nullptr;
  if (size < 0) return errno;
  if (size == 0) return 0;
  if (static_cast<size_t>(size) > sizeof packed ||
      !Unpack({packed, static_cast<size_t>(size)}, entry, buffer))
    return ERANGE;
  *result = &entry;
  return 0;
}

// The functions that are not reentrant have one place for their result.
passwd g_entry;
char g_entry_text[kEntryBytes];

passwd* Found(int error, passwd*& found) {
  if (error != 0) errno = error;
  return found;
}

template <typename Id, typename Real>
Id TakeId(api::LibcApi api, Real& real) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real();
  return static_cast<Id>(
      TakeInput(*engine, api, 0, {}, [&](InputCall& call) { call.result = real(); }));
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT uid_t getuid() noexcept {
  return TakeId<uid_t>(deja::api::LibcApi::kgetuid, real_getuid);
}

DEJA_EXPORT uid_t geteuid() noexcept {
  return TakeId<uid_t>(deja::api::LibcApi::kgeteuid, real_geteuid);
}

DEJA_EXPORT gid_t getgid() noexcept {
  return TakeId<gid_t>(deja::api::LibcApi::kgetgid, real_getgid);
}

DEJA_EXPORT gid_t getegid() noexcept {
  return TakeId<gid_t>(deja::api::LibcApi::kgetegid, real_getegid);
}

DEJA_EXPORT int getgroups(int size, gid_t* list) noexcept {
  Engine* engine = size >= 0 && (size == 0 || list != nullptr) ? EngineForHook() : nullptr;
  if (engine == nullptr) return real_getgroups(size, list);
  const std::span<std::byte> out = BytesOf(list, static_cast<size_t>(size) * sizeof(gid_t));
  return static_cast<int>(TakeInput(
      *engine, deja::api::LibcApi::kgetgroups, static_cast<uint64_t>(size), out,
      [size](InputCall& call) {
        call.result = real_getgroups(size, reinterpret_cast<gid_t*>(call.out.data()));
        call.produced =
            call.result > 0 && size > 0 ? static_cast<size_t>(call.result) * sizeof(gid_t) : 0;
      }));
}

DEJA_EXPORT int getlogin_r(char* name, size_t size) {
  Engine* engine = name != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return real_getlogin_r(name, size);
  const int64_t result = TakeInput(*engine, deja::api::LibcApi::kgetlogin_r, size,
                                   BytesOf(name, size), [size](InputCall& call) {
                                     char* out = reinterpret_cast<char*>(call.out.data());
                                     const int error = real_getlogin_r(out, size);
                                     call.result = error != 0 ? -1 : 0;
                                     call.produced = error == 0 ? strlen(out) + 1 : 0;
                                     errno = error != 0 ? error : errno;
                                   });
  return result < 0 ? errno : 0;
}

DEJA_EXPORT char* getlogin() {
  static char name[256];
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real_getlogin();
  const int64_t result = TakeInput(*engine, deja::api::LibcApi::kgetlogin, 0,
                                   BytesOf(name, sizeof name), [](InputCall& call) {
                                     const char* live = real_getlogin();
                                     call.result = live != nullptr ? 0 : -1;
                                     if (live == nullptr) return;
                                     call.produced = std::min(strlen(live) + 1, call.out.size());
                                     memcpy(call.out.data(), live, call.produced);
                                     call.out.back() = std::byte{0};
                                   });
  return result < 0 ? nullptr : name;
}

DEJA_EXPORT int getpwuid_r(uid_t uid, passwd* entry, char* buffer, size_t size, passwd** result) {
  Engine* engine = EngineForHook();
  if (engine == nullptr) return real_getpwuid_r(uid, entry, buffer, size, result);
  return TakeEntry(
      *engine, deja::api::LibcApi::kgetpwuid, uid, *entry, {buffer, size}, result,
      [uid](passwd* e, char* b, size_t s, passwd** f) { return real_getpwuid_r(uid, e, b, s, f); });
}

DEJA_EXPORT int getpwnam_r(const char* name, passwd* entry, char* buffer, size_t size,
                           passwd** result) {
  Engine* engine = name != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return real_getpwnam_r(name, entry, buffer, size, result);
  return TakeEntry(*engine, deja::api::LibcApi::kgetpwnam, HashOf(name), *entry, {buffer, size},
                   result, [name](passwd* e, char* b, size_t s, passwd** f) {
                     return real_getpwnam_r(name, e, b, s, f);
                   });
}

DEJA_EXPORT passwd* getpwuid(uid_t uid) {
  if (EngineForHook() == nullptr) return real_getpwuid(uid);
  passwd* found = nullptr;
  return Found(getpwuid_r(uid, &g_entry, g_entry_text, sizeof g_entry_text, &found), found);
}

DEJA_EXPORT passwd* getpwnam(const char* name) {
  if (name == nullptr || EngineForHook() == nullptr) return real_getpwnam(name);
  passwd* found = nullptr;
  return Found(getpwnam_r(name, &g_entry, g_entry_text, sizeof g_entry_text, &found), found);
}

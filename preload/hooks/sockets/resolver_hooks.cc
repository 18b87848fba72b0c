// Names of machines: what resolvers answered is an input, so that a replay asks no name server.
//
// Answers are laid out as docs/FORMAT.md says ("Names of machines") and put together again in the
// shape that the program's call wants.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "preload/hooks/export.h"
#include "preload/hooks/input.h"
#include "preload/symbols/name_lookups.h"
#include "preload/symbols/program_heap.h"
#include "preload/symbols/real_symbols.h"

namespace deja::preload {
namespace {

constinit RealFn<int (*)(const char*, const char*, const addrinfo*, addrinfo**)> real_getaddrinfo{
    "getaddrinfo"};
constinit RealFn<int (*)(const sockaddr*, socklen_t, char*, socklen_t, char*, socklen_t, int)>
    real_getnameinfo{"getnameinfo"};
using ByNameFn = int (*)(const char*, hostent*, char*, size_t, hostent**, int*);
using ByName2Fn = int (*)(const char*, int, hostent*, char*, size_t, hostent**, int*);
using ByAddressFn = int (*)(const void*, socklen_t, int, hostent*, char*, size_t, hostent**, int*);
constinit RealFn<ByNameFn> real_gethostbyname_r{"gethostbyname_r"};
constinit RealFn<ByName2Fn> real_gethostbyname2_r{"gethostbyname2_r"};
constinit RealFn<ByAddressFn> real_gethostbyaddr_r{"gethostbyaddr_r"};

constexpr size_t kMaxAnswer = 16 << 10;

// The question as a key. Parts are told apart by their lengths.
class Question {
 public:
  explicit Question(uint64_t kind) : key_(kind) {}
  Question& Add(const void* data, size_t size) {
    key_ = XXH3_64bits_withSeed(data, size, key_ * 31 + size);
    return *this;
  }
  Question& Add(const char* text) { return text == nullptr ? Add("", 0) : Add(text, strlen(text)); }
  Question& Add(int value) { return Add(&value, sizeof value); }
  [[nodiscard]] uint64_t key() const { return key_; }

 private:
  uint64_t key_;
};

// Writes an answer; what does not fit ends it.
class Answer {
 public:
  void Put(const void* data, size_t size) {
    if (size > sizeof bytes_ - size_) {
      full_ = true;
      return;
    }
    std::memcpy(bytes_ + size_, data, size);
    size_ += size;
  }
  void PutNumber(uint32_t value) { Put(&value, sizeof value); }
  void PutText(const char* text) {
    const size_t size = text == nullptr ? 0 : strlen(text);
    PutNumber(text == nullptr ? UINT32_MAX : static_cast<uint32_t>(size));
    if (size != 0) Put(text, size);
  }
  // Length of what was whole at the last call of this; a part that did not fit is left out.
  void Whole() {
    if (!full_) whole_ = size_;
  }
  void CopyTo(InputCall& call) const {
    call.produced = std::min(whole_, call.out.size());
    std::memcpy(call.out.data(), bytes_, call.produced);
  }

 private:
  char bytes_[kMaxAnswer] = {};
  size_t size_ = 0;
  size_t whole_ = 0;
  bool full_ = false;
};

// Reads one; its bytes are not to be trusted.
class Reading {
 public:
  explicit Reading(std::string_view bytes) : rest_(bytes) {}
  [[nodiscard]] bool done() const { return rest_.empty() || bad_; }
  uint32_t Number() {
    uint32_t value = 0;
    const std::string_view bytes = Bytes(sizeof value);
    if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view Bytes(size_t size) {
    if (size > rest_.size()) bad_ = true;
    const std::string_view part = bad_ ? std::string_view() : rest_.substr(0, size);
    rest_.remove_prefix(part.size());
    return part;
  }
  // Data is null where there is none.
  std::string_view Text() {
    const uint32_t size = Number();
    return size == UINT32_MAX ? std::string_view() : Bytes(size);
  }

 private:
  std::string_view rest_;
  bool bad_ = false;
};

// ---- getaddrinfo

void PutList(const addrinfo* list, Answer& answer) {
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    for (int value : {one->ai_flags, one->ai_family, one->ai_socktype, one->ai_protocol})
      answer.PutNumber(static_cast<uint32_t>(value));
    answer.PutNumber(one->ai_addrlen);
    answer.Put(one->ai_addr, one->ai_addrlen);
    answer.PutText(one->ai_canonname);
    answer.Whole();
  }
}

// As the C library allocates them, so that its freeaddrinfo frees them.
addrinfo* MakeList(Reading reading) {
  addrinfo* first = nullptr;
  addrinfo** next = &first;
  while (!reading.done()) {
    addrinfo head{};
    head.ai_flags = static_cast<int>(reading.Number());
    head.ai_family = static_cast<int>(reading.Number());
    head.ai_socktype = static_cast<int>(reading.Number());
    head.ai_protocol = static_cast<int>(reading.Number());
    const std::string_view address = reading.Bytes(reading.Number());
    const std::string_view name = reading.Text();
    auto* one = static_cast<addrinfo*>(ProgramAllocate(sizeof(addrinfo) + address.size()));
    if (one == nullptr) break;
    *one = head;
    one->ai_addrlen = static_cast<socklen_t>(address.size());
    one->ai_addr = reinterpret_cast<sockaddr*>(one + 1);
    std::memcpy(static_cast<void*>(one + 1), address.data(), address.size());
    if (name.data() != nullptr) one->ai_canonname = strndup(name.data(), name.size());
    *next = one;
    next = &one->ai_next;
  }
  return first;
}

// ---- hostent

void PutHost(const hostent& host, Answer& answer) {
  answer.PutText(host.h_name);
  answer.PutNumber(static_cast<uint32_t>(host.h_addrtype));
  answer.PutNumber(static_cast<uint32_t>(host.h_length));
  uint32_t aliases = 0;
  uint32_t addresses = 0;
  while (host.h_aliases != nullptr && host.h_aliases[aliases] != nullptr) ++aliases;
  while (host.h_addr_list != nullptr && host.h_addr_list[addresses] != nullptr) ++addresses;
  answer.PutNumber(aliases);
  for (uint32_t i = 0; i < aliases; ++i) answer.PutText(host.h_aliases[i]);
  answer.PutNumber(addresses);
  for (uint32_t i = 0; i < addresses; ++i)
    answer.Put(host.h_addr_list[i], static_cast<size_t>(host.h_length));
  answer.Whole();
}

// Space in the program's buffer, from its beginning.
class Room {
 public:
  Room(char* buffer, size_t size) : at_(buffer), left_(buffer == nullptr ? 0 : size) {}
  void Align() { Take(-reinterpret_cast<uintptr_t>(at_) % alignof(char*)); }
  char* Take(size_t size) {
    if (size > left_) {
      full_ = true;
      return nullptr;
    }
    char* taken = at_;
    at_ += size;
    left_ -= size;
    return taken;
  }
  char* Text(std::string_view text) {
    char* out = Take(text.size() + 1);
    if (out == nullptr) return nullptr;
    std::memcpy(out, text.data(), text.size());
    out[text.size()] = 0;
    return out;
  }
  [[nodiscard]] bool full() const { return full_; }

 private:
  char* at_;
  size_t left_;
  bool full_ = false;
};

// False if there is not enough room.
bool MakeHost(Reading reading, hostent& host, char* buffer, size_t size) {
  Room room(buffer, size);
  room.Align();
  const std::string_view name = reading.Text();
  host.h_addrtype = static_cast<int>(reading.Number());
  host.h_length = static_cast<int>(std::min<uint32_t>(reading.Number(), sizeof(in6_addr)));
  // Pointers first, for their alignment.
  constexpr uint32_t kMost = 64;
  char** aliases = nullptr;
  char** addresses = nullptr;
  Reading ahead = reading;
  const uint32_t alias_count = std::min(ahead.Number(), kMost);
  for (uint32_t i = 0; i < alias_count; ++i) ahead.Text();
  const uint32_t address_count = std::min(ahead.Number(), kMost);
  aliases = reinterpret_cast<char**>(room.Take((alias_count + 1) * sizeof(char*)));
  addresses = reinterpret_cast<char**>(room.Take((address_count + 1) * sizeof(char*)));
  if (aliases == nullptr || addresses == nullptr) return false;
  reading.Number();
  for (uint32_t i = 0; i < alias_count; ++i) aliases[i] = room.Text(reading.Text());
  aliases[alias_count] = nullptr;
  reading.Number();
  for (uint32_t i = 0; i < address_count; ++i) {
    const auto length = static_cast<size_t>(host.h_length);
    const std::string_view address = reading.Bytes(length);
    addresses[i] = room.Take(length);
    if (addresses[i] != nullptr) std::memcpy(addresses[i], address.data(), address.size());
  }
  addresses[address_count] = nullptr;
  host.h_name = room.Text(name);
  host.h_aliases = aliases;
  host.h_addr_list = addresses;
  return !room.full();
}

// What a look-up of a host returned: the result, the resolver's error, the host. `real(buffer,
// size, hostent** found, int* error)` asks, with the program's `host` and buffer.
template <typename Real>
int TakeHost(api::LibcApi api, const Question& question, hostent* host, char* buffer, size_t size,
             hostent** result, int* error, Real real) {
  Engine* engine = host != nullptr && result != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return real(buffer, size, result, error);
  std::byte bytes[kMaxAnswer];
  const InputCall taken = TakeInputCall(*engine, api, question.key(), BytesOf(bytes, sizeof bytes),
                                        [&](InputCall& call) {
                                          hostent* found = nullptr;
                                          int why = 0;
                                          call.result = real(buffer, size, &found, &why);
                                          Answer answer;
                                          answer.PutNumber(static_cast<uint32_t>(why));
                                          answer.Whole();
                                          if (found != nullptr) PutHost(*found, answer);
                                          answer.CopyTo(call);
                                        });
  Reading reading({reinterpret_cast<const char*>(bytes), taken.produced});
  const int why = static_cast<int>(reading.Number());
  if (error != nullptr) *error = why;
  *result = nullptr;
  if (taken.result != 0 || reading.done()) return static_cast<int>(taken.result);
  if (!MakeHost(reading, *host, buffer, size)) return ERANGE;
  *result = host;
  return 0;
}

// The functions without a buffer share one, as the C library's do.
constinit hostent g_host{};
char g_buffer[kMaxAnswer];

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the hooks below are this file's only names

DEJA_EXPORT int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                            addrinfo** list) {
  Engine* engine = list != nullptr ? EngineForHook() : nullptr;
  if (engine == nullptr) return real_getaddrinfo(node, service, hints, list);
  Question question(1);
  question.Add(node).Add(service);
  if (hints != nullptr) {
    for (int part : {hints->ai_flags, hints->ai_family, hints->ai_socktype, hints->ai_protocol})
      question.Add(part);
  }
  std::byte bytes[kMaxAnswer];
  const InputCall taken = TakeInputCall(*engine, deja::api::LibcApi::kgetaddrinfo, question.key(),
                                        BytesOf(bytes, sizeof bytes), [&](InputCall& call) {
                                          addrinfo* found = nullptr;
                                          addrinfo numeric = hints != nullptr ? *hints : addrinfo{};
                                          numeric.ai_flags |= AI_NUMERICHOST;
                                          const addrinfo* wanted = t_ask_nobody ? &numeric : hints;
                                          call.result =
                                              real_getaddrinfo(node, service, wanted, &found);
                                          if (call.result != 0) return;
                                          Answer answer;
                                          PutList(found, answer);
                                          answer.CopyTo(call);
                                          freeaddrinfo(found);
                                        });
  if (taken.result != 0) return static_cast<int>(taken.result);
  *list = MakeList(Reading({reinterpret_cast<const char*>(bytes), taken.produced}));
  return *list != nullptr ? 0 : EAI_MEMORY;
}

DEJA_EXPORT int getnameinfo(const sockaddr* address, socklen_t length, char* host,
                            socklen_t host_size, char* service, socklen_t service_size, int flags) {
  Engine* engine = address != nullptr ? EngineForHook() : nullptr;
  auto real = [&] {
    return real_getnameinfo(address, length, host, host_size, service, service_size, flags);
  };
  if (engine == nullptr) return real();
  Question question(2);
  question.Add(address, length).Add(flags);
  question.Add(static_cast<int>(host_size)).Add(static_cast<int>(service_size));
  std::byte bytes[kMaxAnswer];
  const InputCall taken = TakeInputCall(*engine, deja::api::LibcApi::kgetnameinfo, question.key(),
                                        BytesOf(bytes, sizeof bytes), [&](InputCall& call) {
                                          call.result = real();
                                          if (call.result != 0) return;
                                          Answer answer;
                                          answer.PutText(host_size != 0 ? host : nullptr);
                                          answer.PutText(service_size != 0 ? service : nullptr);
                                          answer.Whole();
                                          answer.CopyTo(call);
                                        });
  if (taken.result != 0) return static_cast<int>(taken.result);
  Reading reading({reinterpret_cast<const char*>(bytes), taken.produced});
  const std::string_view names[] = {reading.Text(), reading.Text()};
  Room(host, host_size).Text(names[0]);
  Room(service, service_size).Text(names[1]);
  return 0;
}

DEJA_EXPORT int gethostbyname_r(const char* name, hostent* host, char* buffer, size_t size,
                                hostent** result, int* error) {
  return TakeHost(deja::api::LibcApi::kgethostbyname_r, Question(3).Add(name), host, buffer, size,
                  result, error, [&](char* b, size_t n, hostent** found, int* why) {
                    return real_gethostbyname_r(name, host, b, n, found, why);
                  });
}

DEJA_EXPORT int gethostbyname2_r(const char* name, int family, hostent* host, char* buffer,
                                 size_t size, hostent** result, int* error) {
  return TakeHost(deja::api::LibcApi::kgethostbyname2_r, Question(4).Add(name).Add(family), host,
                  buffer, size, result, error, [&](char* b, size_t n, hostent** found, int* why) {
                    return real_gethostbyname2_r(name, family, host, b, n, found, why);
                  });
}

DEJA_EXPORT int gethostbyaddr_r(const void* address, socklen_t length, int family, hostent* host,
                                char* buffer, size_t size, hostent** result, int* error) {
  return TakeHost(deja::api::LibcApi::kgethostbyaddr_r,
                  Question(5).Add(address, length).Add(family), host, buffer, size, result, error,
                  [&](char* b, size_t n, hostent** found, int* why) {
                    return real_gethostbyaddr_r(address, length, family, host, b, n, found, why);
                  });
}

DEJA_EXPORT hostent* gethostbyname(const char* name) {
  hostent* found = nullptr;
  int error = 0;
  gethostbyname_r(name, &g_host, g_buffer, sizeof g_buffer, &found, &error);
  h_errno = error;
  return found;
}

DEJA_EXPORT hostent* gethostbyname2(const char* name, int family) {
  hostent* found = nullptr;
  int error = 0;
  gethostbyname2_r(name, family, &g_host, g_buffer, sizeof g_buffer, &found, &error);
  h_errno = error;
  return found;
}

DEJA_EXPORT hostent* gethostbyaddr(const void* address, socklen_t length, int family) {
  hostent* found = nullptr;
  int error = 0;
  gethostbyaddr_r(address, length, family, &g_host, g_buffer, sizeof g_buffer, &found, &error);
  h_errno = error;
  return found;
}

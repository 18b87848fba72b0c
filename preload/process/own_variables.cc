#include "preload/process/own_variables.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "common/own_variable_names.h"
#include "common/runtime/own_mapping.h"

namespace deja::preload {
namespace {

constexpr std::string_view kPreload = "LD_PRELOAD=";
constexpr size_t kMostKept = 64;  // the launcher fills up to 48 (cli/own_variables.h)
constexpr size_t kMostHidden = 128;

constinit const char* g_kept[kMostKept] = {};
constinit size_t g_kept_count = 0;
constinit char g_library[4096] = {};
constinit size_t g_library_size = 0;
constinit std::atomic<bool> g_hidden{false};

char* CopyOf(size_t bytes) {
  void* memory = MapOwn(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

// What the program sees of its LD_PRELOAD; null: nothing.
char* ProgramsPreload(char* entry) {
  const std::string_view list = std::string_view(entry).substr(kPreload.size());
  if (list.find(OwnLibrary()) == std::string_view::npos) return entry;
  char* text = CopyOf(kPreload.size() + list.size() + 1);
  if (text == nullptr) return entry;
  kPreload.copy(text, kPreload.size());
  const size_t left = WithoutOwnLibrary(list, {text + kPreload.size(), list.size() + 1});
  // A list that the program has emptied (process_name.cc) is there.
  return left == 0 && !list.ends_with(':') ? nullptr : text;
}

}  // namespace

void KeepOwnVariables(std::string_view left_out) {
  const auto is_kept = [left_out](std::string_view entry) {
    return IsOwnVariable(entry) && entry.substr(0, left_out.size()) != left_out;
  };
  size_t bytes = 0;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (is_kept(*entry)) bytes += std::strlen(*entry) + 1;
  char* at = bytes == 0 ? nullptr : CopyOf(bytes);
  if (at == nullptr) return;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!is_kept(*entry)) continue;
    const size_t size = std::strlen(*entry) + 1;
    AddOwnVariable(static_cast<char*>(std::memcpy(at, *entry, size)));
    at += size;
  }
  Dl_info info{};
  if (dladdr(&g_kept, &info) == 0 || info.dli_fname == nullptr) return;
  const size_t size = std::strlen(info.dli_fname);
  if (size >= sizeof g_library) return;
  std::memcpy(g_library, info.dli_fname, size + 1);
  g_library_size = size;
}

void AddOwnVariable(const char* entry) {
  if (g_kept_count < kMostKept) g_kept[g_kept_count++] = entry;
}

std::span<const char* const> OwnVariables() {
  return {g_kept, g_kept_count};
}

std::string_view OwnLibrary() {
  return {g_library, g_library_size};
}

size_t WithoutOwnLibrary(std::string_view list, std::span<char> out) {
  size_t size = 0;
  const auto put = [&](std::string_view text) {
    std::memmove(out.data() + size, text.data(), text.size());  // `out` may be `list` itself
    size += text.size();
  };
  // The separator in front of an item goes with it, or the one after it if it is the first.
  std::string_view separator;
  while (!list.empty()) {
    const size_t end = std::min(list.find_first_of(": "), list.size());
    const std::string_view item = list.substr(0, end);
    if (item != OwnLibrary()) {
      if (size != 0) put(separator);
      put(item);
    }
    separator = list.substr(end, 1);
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  out[size] = '\0';
  return size;
}

// Ours go to the front of the array, which then begins after them and ends where it has ended. A
// reader that looks for the auxiliary vector after it finds it. Go's runtime does so from argv on;
// it sees ours and hands them on, since it execs without the C library.
void HideOwnVariables() {
  if (g_kept_count == 0 || g_library_size == 0 || environ == nullptr) return;
  char** const entries = environ;
  char* own[kMostHidden];
  size_t own_count = 0;
  size_t end = 0;
  while (entries[end] != nullptr) ++end;
  size_t to = end;
  for (size_t i = end; i-- > 0;) {
    char* entry = entries[i];
    char* seen = entry;
    if (IsHiddenVariable(entry))
      seen = nullptr;
    else if (std::strncmp(entry, kPreload.data(), kPreload.size()) == 0)
      seen = ProgramsPreload(entry);
    if (seen == nullptr && own_count < kMostHidden)
      own[own_count++] = entry;
    else
      entries[--to] = seen == nullptr ? entry : seen;
  }
  for (size_t i = 0; i < own_count; ++i) entries[--to] = own[i];
  environ = entries + own_count;
  g_hidden.store(true, std::memory_order_release);
}

bool OwnVariablesAreHidden() {
  return g_hidden.load(std::memory_order_acquire);
}

const char* OwnVariable(const env::Variable& variable) {
  return OwnVariableNamed(variable.name);
}

uint64_t OwnNumber(const env::Number& variable) {
  const char* value = OwnVariable(variable);
  return value == nullptr ? 0 : std::strtoull(value, nullptr, 10);
}

bool OwnFlag(const env::Flag& variable) {
  const char* value = OwnVariable(variable);
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

bool OwnVariableIs(const env::Choice& variable, std::string_view value) {
  const char* set = OwnVariable(variable);
  return set != nullptr && value == set;
}

const char* OwnVariableNamed(const char* name) {
  if (!OwnVariablesAreHidden()) return std::getenv(name);
  const size_t size = std::strlen(name);
  for (const char* entry : OwnVariables())
    if (std::strncmp(entry, name, size) == 0 && entry[size] == '=') return entry + size + 1;
  return nullptr;
}

}  // namespace deja::preload

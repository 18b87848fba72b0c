#include "preload/files/file_facts.h"

#include <charconv>
#include <cstdint>

namespace deja::preload {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

int64_t Ns(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * kSecond + time.tv_nsec;
}

timespec TimeOf(int64_t ns) {
  const int64_t rest = (ns % kSecond + kSecond) % kSecond;
  return {(ns - rest) / kSecond, rest};
}

// Takes a number, and the space after it, from the front of `text`.
template <typename T>
bool Take(std::string_view& text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (!text.empty() && text[0] != ' ') return false;
  text.remove_prefix(text.empty() ? 0 : 1);
  return true;
}

}  // namespace

std::string_view WriteFileFacts(const struct stat& info, std::span<char, kMaxFileFacts> room) {
  char* at = room.data();
  char* const end = at + room.size();
  const auto put = [&](auto number) {
    if (at != room.data() && at != end) *at++ = ' ';
    at = std::to_chars(at, end, number).ptr;
  };
  put(info.st_uid);
  put(info.st_gid);
  put(info.st_nlink);
  put(Ns(info.st_atim));
  put(Ns(info.st_ctim));
  return {room.data(), static_cast<size_t>(at - room.data())};
}

bool ReadFileFacts(std::string_view text, struct stat& info) {
  uid_t owner = 0;
  gid_t group = 0;
  nlink_t links = 0;
  int64_t accessed = 0;
  int64_t changed = 0;
  if (!Take(text, owner) || !Take(text, group) || !Take(text, links) || !Take(text, accessed) ||
      !Take(text, changed) || !text.empty())
    return false;
  info.st_uid = owner;
  info.st_gid = group;
  info.st_nlink = links;
  info.st_atim = TimeOf(accessed);
  info.st_ctim = TimeOf(changed);
  return true;
}

}  // namespace deja::preload

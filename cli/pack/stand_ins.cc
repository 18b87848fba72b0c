#include "cli/pack/stand_ins.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

namespace deja::cli {
namespace {

constexpr size_t kShortestNeedle = 3;
constexpr size_t kShortestValue = 8;
constexpr size_t kAddress4 = 4;
constexpr size_t kAddress6 = 16;

bool IsAlnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
bool IsNumeral(char c) {
  return c >= '0' && c <= '9';
}
bool IsPathChar(char c) {
  return IsAlnum(c) || std::string_view("._+-@%~/#").find(c) != std::string_view::npos;
}
bool IsHexOrColon(char c) {
  return IsNumeral(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':';
}

template <size_t N>
bool IsOneOf(std::string_view word, const std::string_view (&list)[N]) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

// Names that many machines have say nothing of this one, and are words of other texts.
constexpr std::string_view kCommonNames[] = {
    "localhost", "root",   "nobody", "ubuntu", "debian", "centos", "ec2-user", "admin",
    "user",      "test",   "runner", "docker", "jovyan", "slurm",  "train",    "data",
    "model",     "python", "main",   "host",   "node",   "master", "worker",   "gpu",
};
// What the system has brought.
constexpr std::string_view kSystemFolders[] = {"usr", "lib", "lib64", "bin",  "sbin", "etc", "proc",
                                               "dev", "sys", "run",   "boot", "snap", "nix"};
// Components that many paths have.
constexpr std::string_view kPlainComponents[] = {
    "bin",    "lib",    "lib64",    "home",    "root",          "tmp",           "var",
    "opt",    "mnt",    "data",     "scratch", "site-packages", "dist-packages", "venv",
    ".venv",  "env",    "envs",     "conda",   "miniconda3",    "anaconda3",     "local",
    "src",    "build",  "share",    "include", ".cache",        "cache",         "nfs",
    "lustre", "gpfs",   "work",     "users",   "Users",         "torch",         "nccl",
    "cuda",   "nvidia", "torchrun", "logs",    "checkpoints",   "datasets",      "deja",
};

bool IsPlainComponent(std::string_view component) {
  constexpr std::string_view kPython = "python";
  const bool python = component.substr(0, kPython.size()) == kPython;
  const std::string_view rest = component.substr(python ? kPython.size() : 0);
  const bool number =
      std::all_of(rest.begin(), rest.end(), [](char c) { return IsNumeral(c) || c == '.'; });
  return number || IsOneOf(component, kPlainComponents);
}

std::string_view WordOf(StandInKind kind) {
  switch (kind) {
    case StandInKind::kHost:
      return "host";
    case StandInKind::kUser:
      return "user";
    case StandInKind::kPath:
      return "p";
    case StandInKind::kAddress:
      return "a";
    case StandInKind::kValue:
      return "value";
  }
  return {};
}

// "host000012": the word, and the number in as many digits as fit after it. Where there is no room
// for both, letters and digits alone.
std::string Numbered(std::string_view word, uint64_t number, size_t length) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string digits;
  for (uint64_t rest = number; rest != 0; rest /= kDigits.size())
    digits.insert(digits.begin(), kDigits[rest % kDigits.size()]);
  if (word.size() + digits.size() > length) word = word.substr(0, length > digits.size() ? 1 : 0);
  if (digits.size() > length) digits = digits.substr(digits.size() - length);
  return std::string(word) + std::string(length - word.size() - digits.size(), '0') + digits;
}

bool IsPublicAddress(const in_addr& address) {
  const uint32_t value = ntohl(address.s_addr);
  return value >> 24 != 127 && value != 0 && value != ~uint32_t{0};
}

std::optional<in_addr> ParseAddress4(std::string_view text) {
  in_addr address{};
  if (inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) return std::nullopt;
  return address;
}

// Where a dotted address is that begins at `at`; 0: none does.
size_t Address4Length(std::string_view text, size_t at) {
  if (at > 0 && (IsAlnum(text[at - 1]) || text[at - 1] == '.')) return 0;
  size_t end = at;
  while (end < text.size() && (IsNumeral(text[end]) || text[end] == '.')) ++end;
  while (end > at && text[end - 1] == '.') --end;
  if (end < text.size() && IsAlnum(text[end])) return 0;
  return ParseAddress4(text.substr(at, end - at)) ? end - at : 0;
}

size_t Address6Length(std::string_view text, size_t at) {
  if (at > 0 && (IsAlnum(text[at - 1]) || text[at - 1] == ':')) return 0;
  size_t end = at;
  while (end < text.size() && IsHexOrColon(text[end])) ++end;
  const std::string candidate(text.substr(at, end - at));
  in6_addr address{};
  constexpr size_t kShortest = 6;
  const bool is_one = candidate.size() >= kShortest && candidate.find(':') != std::string::npos &&
                      inet_pton(AF_INET6, candidate.c_str(), &address) == 1;
  return is_one && (end == text.size() || !IsAlnum(text[end])) ? end - at : 0;
}

// An address with as many digits in each part.
std::string NumberedAddress4(std::string_view text, uint64_t number) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('.', at), text.size());
    const size_t digits = end - at;
    const uint64_t least = digits == 1 ? 1 : digits == 2 ? 10 : 100;
    const uint64_t count = digits == 1 ? 9 : digits == 2 ? 90 : 150;
    result += (at == 0 ? "" : ".") + std::to_string(least + number % count);
    number /= count;
    at = end + 1;
  }
  return result;
}

}  // namespace

// ---- What is learnt

void StandIns::AddNeedle(std::string_view text, std::string stand_in, bool word) {
  if (text.empty() || text == stand_in) return;
  needles_.push_back({std::string(text), std::move(stand_in), word});
}

void StandIns::LearnHost(std::string_view name) {
  if (name.empty() || IsOneOf(name, kCommonNames) || Address4Length(name, 0) == name.size()) return;
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos && name.size() < kShortestNeedle) return;
  // The host alone and its domain have stand-ins of their own, so that they are known apart.
  const std::string host = Of(StandInKind::kHost, name.substr(0, dot));
  if (name.substr(0, dot).size() >= kShortestNeedle) AddNeedle(name.substr(0, dot), host);
  if (dot == std::string_view::npos) return;
  std::string domain;
  for (size_t at = dot; at < name.size();) {
    const size_t end = std::min(name.find('.', at + 1), name.size());
    domain += "." + Of(StandInKind::kHost, name.substr(at + 1, end - at - 1));
    at = end;
  }
  AddNeedle(name, host + domain);
  if (name.find('.', dot + 1) != std::string_view::npos)
    AddNeedle(name.substr(dot + 1), domain.substr(1));
  made_[{StandInKind::kHost, std::string(name)}] = host + domain;
}

void StandIns::LearnUser(std::string_view name) {
  const bool is_number = std::all_of(name.begin(), name.end(), IsNumeral);
  if (name.size() < kShortestNeedle || is_number || IsOneOf(name, kCommonNames)) return;
  AddNeedle(name, Of(StandInKind::kUser, name));
}

void StandIns::LearnWorkingFolder(std::string_view path) {
  // What is below such a short one is everything.
  const auto depth = std::count(path.begin(), path.end(), '/');
  if (path.empty() || path[0] != '/' || depth < 2) return;
  if (std::find(working_folders_.begin(), working_folders_.end(), path) == working_folders_.end())
    working_folders_.emplace_back(path);
}

void StandIns::LearnValue(std::string_view name, std::string_view value) {
  const std::string stand_in = Of(StandInKind::kValue, value);
  AddNeedle(std::string(name) + "=" + std::string(value), std::string(name) + "=" + stand_in);
  // A word alone may be another program's.
  const bool is_word =
      std::all_of(value.begin(), value.end(), [](char c) { return IsAlnum(c) && !IsNumeral(c); });
  if (value.size() >= kShortestValue && !is_word) AddNeedle(value, stand_in);
}

void StandIns::LearnAddresses(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t size4 = Address4Length(text, at);
    const size_t size = size4 != 0 ? size4 : Address6Length(text, at);
    if (size == 0) continue;
    OfAddressText(text.substr(at, size));
    at += size;
  }
}

void StandIns::LearnAddress(std::span<const std::byte> address) {
  char text[INET6_ADDRSTRLEN] = {};
  const int family = address.size() == kAddress4 ? AF_INET : AF_INET6;
  if (inet_ntop(family, address.data(), text, sizeof text) != nullptr) OfAddressText(text);
}

void StandIns::LearnBytes(const std::string& bytes, std::string stand_in) {
  AddNeedle(bytes, std::move(stand_in), false);
}

void StandIns::Settle() {
  // Folders in which processes ran, as they stand in texts and in bytes.
  for (const std::string& folder : working_folders_) AddNeedle(folder, OfPath(folder));
  for (const auto& [key, stand_in] : made_)
    if (key.first == StandInKind::kAddress) AddNeedle(key.second, stand_in);
  for (std::vector<uint32_t>& list : needles_by_first_) list.clear();
  for (uint32_t i = 0; i < needles_.size(); ++i)
    needles_by_first_[static_cast<unsigned char>(needles_[i].text[0])].push_back(i);
  for (std::vector<uint32_t>& list : needles_by_first_)
    std::stable_sort(list.begin(), list.end(), [this](uint32_t a, uint32_t b) {
      return needles_[a].text.size() > needles_[b].text.size();
    });
}

// ---- Stand-ins

std::string StandIns::Of(StandInKind kind, std::string_view text) {
  const auto key = std::make_pair(kind, std::string(text));
  if (const auto it = made_.find(key); it != made_.end()) return it->second;
  const uint64_t number = ++numbers_[{kind, text.size()}];
  return made_[key] = Numbered(WordOf(kind), number, text.size());
}

std::string StandIns::OfAddressText(std::string_view text) {
  const auto key = std::make_pair(StandInKind::kAddress, std::string(text));
  if (const auto it = made_.find(key); it != made_.end()) return it->second;
  std::string stand_in(text);
  if (const std::optional<in_addr> address = ParseAddress4(text)) {
    if (!IsPublicAddress(*address)) return stand_in;
    do {
      stand_in = NumberedAddress4(text, ++numbers_[{StandInKind::kAddress, text.size()}]);
    } while (stand_in == text);
    const std::optional<in_addr> other = ParseAddress4(stand_in);
    if (other) {
      std::string from(kAddress4, '\0');
      std::string to(kAddress4, '\0');
      std::memcpy(from.data(), &*address, kAddress4);
      std::memcpy(to.data(), &*other, kAddress4);
      binary_addresses_[from] = to;
    }
  } else {
    in6_addr address6{};
    if (inet_pton(AF_INET6, std::string(text).c_str(), &address6) != 1) return stand_in;
    if (IN6_IS_ADDR_LOOPBACK(&address6) || IN6_IS_ADDR_UNSPECIFIED(&address6)) return stand_in;
    // The same shape with other digits: "fd00::1a2b" becomes "0000::0001".
    uint64_t number = ++numbers_[{StandInKind::kAddress, text.size()}];
    for (size_t i = stand_in.size(); i > 0; --i) {
      if (stand_in[i - 1] == ':') continue;
      stand_in[i - 1] = "0123456789abcdef"[number % 16];
      number /= 16;
    }
    if (inet_pton(AF_INET6, stand_in.c_str(), &address6) == 1) {
      in6_addr before{};
      inet_pton(AF_INET6, std::string(text).c_str(), &before);
      binary_addresses_[{reinterpret_cast<const char*>(&before), kAddress6}] =
          std::string(reinterpret_cast<const char*>(&address6), kAddress6);
    }
  }
  return made_[key] = stand_in;
}

const std::string* StandIns::WorkingFolderOf(std::string_view path) const {
  const std::string* best = nullptr;
  for (const std::string& folder : working_folders_) {
    const bool below = path.substr(0, folder.size()) == folder &&
                       (path.size() == folder.size() || path[folder.size()] == '/');
    if (below && (best == nullptr || folder.size() > best->size())) best = &folder;
  }
  return best;
}

std::string StandIns::OfComponent(std::string_view component, bool is_last) {
  if (IsPlainComponent(component)) return std::string(component);
  if (const auto it = made_.find(std::make_pair(StandInKind::kUser, std::string(component)));
      it != made_.end())
    return it->second;
  // What kind of file it is stays readable.
  const size_t dot = is_last ? component.rfind('.') : std::string_view::npos;
  constexpr size_t kLongestEnding = 8;
  if (dot == std::string_view::npos || dot == 0 || component.size() - dot > kLongestEnding)
    return Of(StandInKind::kPath, component);
  return Of(StandInKind::kPath, component.substr(0, dot)) + std::string(component.substr(dot));
}

std::string StandIns::OfPath(std::string_view path) {
  if (path.empty() || path[0] != '/') return std::string(path);
  const size_t first_end = std::min(path.find('/', 1), path.size());
  if (IsOneOf(path.substr(1, first_end - 1), kSystemFolders)) return std::string(path);
  const std::string* folder = WorkingFolderOf(path);
  const size_t keep_from = folder != nullptr ? folder->size() : path.size();
  std::string result;
  bool open_source = false;  // below a folder of packages
  for (size_t at = 0; at < keep_from;) {
    const size_t end = std::min(path.find('/', at + 1), keep_from);
    const std::string_view component = path.substr(at + 1, end - at - 1);
    result += '/';
    result += open_source ? std::string(component) : OfComponent(component, end == path.size());
    open_source = open_source || component == "site-packages" || component == "dist-packages";
    at = end;
  }
  std::string rest(path.substr(keep_from));
  ReplaceLearnt(rest);
  return result + rest;
}

// ---- Replacing

bool StandIns::ReplaceLearnt(std::span<char> bytes) {
  bool changed = false;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const uint32_t index : needles_by_first_[static_cast<unsigned char>(bytes[at])]) {
      const Needle& needle = needles_[index];
      const size_t size = needle.text.size();
      if (size > bytes.size() - at || std::memcmp(bytes.data() + at, needle.text.data(), size) != 0)
        continue;
      const bool within =
          (at > 0 && IsAlnum(bytes[at - 1]) && IsAlnum(needle.text.front())) ||
          (at + size < bytes.size() && IsAlnum(bytes[at + size]) && IsAlnum(needle.text.back()));
      if (needle.word && within) continue;
      std::copy(needle.stand_in.begin(), needle.stand_in.end(),
                bytes.begin() + static_cast<ptrdiff_t>(at));
      changed = true;
      at += size - 1;
      break;
    }
  }
  return changed;
}

// Paths begin where nothing of a path or a word stands before their slash.
bool StandIns::ReplacePaths(std::string& text) {
  bool changed = false;
  for (size_t at = text.find('/'); at != std::string::npos; at = text.find('/', at)) {
    size_t end = at;
    while (end < text.size() && IsPathChar(text[end])) ++end;
    const bool behind_option = at > 1 && text[at - 2] == '-';  // -I/home/joe
    const bool begins = at == 0 || behind_option || !IsPathChar(text[at - 1]);
    const bool is_url = text.compare(at, 2, "//") == 0;
    if (begins && !is_url && end - at > 1) {
      const std::string stand_in = OfPath(std::string_view(text).substr(at, end - at));
      if (text.compare(at, end - at, stand_in) != 0) {
        text.replace(at, end - at, stand_in);
        changed = true;
      }
    }
    at = std::max(end, at + 1);
  }
  return changed;
}

bool StandIns::ReplaceAddresses(std::string& text) {
  bool changed = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t size4 = Address4Length(text, at);
    const size_t size = size4 != 0 ? size4 : Address6Length(text, at);
    if (size == 0) continue;
    const std::string stand_in = OfAddressText(std::string_view(text).substr(at, size));
    changed = text.compare(at, size, stand_in) != 0 || changed;
    text.replace(at, size, stand_in);
    at += size - 1;
  }
  return changed;
}

bool StandIns::ReplaceAll(std::string& text) {
  const bool paths = ReplacePaths(text);
  const bool addresses = ReplaceAddresses(text);
  return ReplaceLearnt(text) || paths || addresses;
}

bool StandIns::ReplaceAddress(std::span<std::byte> address) {
  LearnAddress(address);
  const std::string key(reinterpret_cast<const char*>(address.data()), address.size());
  const auto it = binary_addresses_.find(key);
  if (it == binary_addresses_.end()) return false;
  std::memcpy(address.data(), it->second.data(), address.size());
  return true;
}

bool StandIns::ReplaceKnownAddresses(std::span<char> bytes) {
  bool changed = false;
  for (size_t at = 0; at + kAddress4 <= bytes.size(); ++at) {
    for (const size_t size : {kAddress6, kAddress4}) {
      if (at + size > bytes.size()) continue;
      const auto it = binary_addresses_.find(std::string(bytes.data() + at, size));
      if (it == binary_addresses_.end()) continue;
      std::memcpy(bytes.data() + at, it->second.data(), size);
      changed = true;
      at += size - 1;
      break;
    }
  }
  return changed;
}

bool StandIns::ReplaceSocketAddress(std::span<char> address) {
  sa_family_t family = 0;
  if (address.size() < sizeof family) return false;
  std::memcpy(&family, address.data(), sizeof family);
  const auto at = [&](size_t offset, size_t size) {
    return offset + size <= address.size() ? std::as_writable_bytes(address.subspan(offset, size))
                                           : std::span<std::byte>();
  };
  if (family == AF_INET) {
    const auto bytes = at(offsetof(sockaddr_in, sin_addr), kAddress4);
    return !bytes.empty() && ReplaceAddress(bytes);
  }
  if (family == AF_INET6) {
    const auto bytes = at(offsetof(sockaddr_in6, sin6_addr), kAddress6);
    return !bytes.empty() && ReplaceAddress(bytes);
  }
  if (family != AF_UNIX) return false;
  const std::span<char> name = address.subspan(sizeof family);
  std::string path(name.begin(), std::find(name.begin(), name.end(), '\0'));
  if (!ReplaceAll(path)) return ReplaceLearnt(name);
  std::copy(path.begin(), path.end(), name.begin());
  return true;
}

std::array<size_t, kStandInKinds> StandIns::Counts() const {
  std::array<size_t, kStandInKinds> counts{};
  for (const auto& [key, stand_in] : made_)
    if (key.second != stand_in) ++counts[static_cast<size_t>(key.first)];
  return counts;
}

}  // namespace deja::cli

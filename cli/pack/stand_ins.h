// StandIns: what stands for the names of hosts, users, folders and addresses in a bundle that is
// given away. The same string gets the same stand-in, of the same length, wherever it comes.
//
// Learn… first; Settle; then the rest. One thread. Memory: an entry for each distinct string.
#ifndef DEJA_CLI_PACK_STAND_INS_H_
#define DEJA_CLI_PACK_STAND_INS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deja::cli {

enum class StandInKind : uint8_t { kHost, kUser, kPath, kAddress, kValue };
inline constexpr size_t kStandInKinds = 5;

class StandIns {
 public:
  // A host's name, with its domain where it has one; a user's name; the folder in which a process
  // ran. What says nothing (localhost, root, /) is left as it is.
  void LearnHost(std::string_view name);
  void LearnUser(std::string_view name);
  void LearnWorkingFolder(std::string_view path);
  // A value of the environment that is not given away: by itself where it is long and no word, else
  // only as NAME=VALUE.
  void LearnValue(std::string_view name, std::string_view value);
  // Addresses that stand in a text, and one as the system has it (4 or 16 bytes).
  void LearnAddresses(std::string_view text);
  void LearnAddress(std::span<const std::byte> address);
  // Bytes that stand for others, wherever they come: unique ids.
  void LearnBytes(const std::string& bytes, std::string stand_in);
  // Nothing new is learnt from here on, but by what follows.
  void Settle();

  // The stand-in of a whole string.
  std::string Of(StandInKind kind, std::string_view text);
  // The stand-in of a path. Folders of the system, and paths below the working folder, stay
  // readable.
  std::string OfPath(std::string_view path);
  // Replaces what was learnt, wherever it stands between other words. True: something was.
  bool ReplaceLearnt(std::span<char> bytes);
  // The same, and all paths and addresses in it.
  bool ReplaceAll(std::string& text);
  // In place, an address of 4 or 16 bytes. True: it was replaced.
  bool ReplaceAddress(std::span<std::byte> address);
  // Those that are known, wherever they stand in an answer of a name server.
  bool ReplaceKnownAddresses(std::span<char> bytes);
  // In place: a struct sockaddr as the system gives it.
  bool ReplaceSocketAddress(std::span<char> address);

  // How many distinct strings have a stand-in, by kind.
  [[nodiscard]] std::array<size_t, kStandInKinds> Counts() const;

 private:
  struct Needle {
    std::string text;
    std::string stand_in;
    bool word;  // only between other words
  };
  void AddNeedle(std::string_view text, std::string stand_in, bool word = true);
  std::string OfComponent(std::string_view component, bool is_last);
  std::string OfAddressText(std::string_view text);
  bool ReplacePaths(std::string& text);
  bool ReplaceAddresses(std::string& text);
  [[nodiscard]] const std::string* WorkingFolderOf(std::string_view path) const;

  std::map<std::pair<StandInKind, std::string>, std::string, std::less<>> made_;
  std::map<std::pair<StandInKind, size_t>, uint64_t> numbers_;  // count of each kind and length
  std::vector<std::string> working_folders_;
  std::vector<Needle> needles_;
  std::array<std::vector<uint32_t>, 256> needles_by_first_;  // longest first
  std::map<std::string, std::string> binary_addresses_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_PACK_STAND_INS_H_

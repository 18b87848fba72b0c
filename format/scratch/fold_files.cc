#include "format/scratch/fold_files.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "common/os/text_file.h"
#include "format/scratch/scratch_names.h"

namespace deja::format {
namespace {

constexpr int kHex = 16;
constexpr int kDecimal = 10;

std::string HexText(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// Takes the next field of a line; false: there is none, or it is no number that fits.
template <typename T>
bool TakeNumber(std::string_view& line, T& value, int base) {
  const char* const end = line.data() + line.size();
  const auto [rest, error] = std::from_chars(line.data(), end, value, base);
  if (error != std::errc() || (rest != end && *rest != ' ')) return false;
  line.remove_prefix(std::min(static_cast<size_t>(rest - line.data()) + 1, line.size()));
  return true;
}

// One line each; `parse(line, entry)` says whether it is one.
template <typename Entry, typename Parse>
Result<std::vector<Entry>> ReadList(const std::string& path, Parse parse) {
  DEJA_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  std::vector<Entry> entries;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    const bool ended = line.size() < rest.size();
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    Entry entry;
    if (!ended || !parse(line, entry) || !line.empty())
      return Fail(ErrorCode::kCorrupt, "reading: " + path + ": line " +
                                           std::to_string(entries.size() + 1) +
                                           " is damaged; replay again with a new --scratch");
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace

Status WriteFoldComms(const std::string& folder, const std::vector<FoldComm>& comms) {
  std::string text;
  for (const FoldComm& comm : comms)
    text +=
        HexText(comm.hash) + ' ' + std::to_string(comm.nranks) + ' ' + HexText(comm.meets) + '\n';
  return WriteTextFile(folder + kFoldCommsFile, text);
}

Result<std::vector<FoldComm>> ReadFoldComms(const std::string& folder) {
  return ReadList<FoldComm>(folder + kFoldCommsFile, [](std::string_view& line, FoldComm& comm) {
    return TakeNumber(line, comm.hash, kHex) && TakeNumber(line, comm.nranks, kDecimal) &&
           TakeNumber(line, comm.meets, kHex);
  });
}

Status WriteFoldResults(const std::string& folder, const std::vector<FoldResult>& results) {
  std::string text;
  for (const FoldResult& result : results)
    text += HexText(result.meets) + ' ' + std::to_string(result.nranks) + ' ' +
            std::to_string(result.seq) + '\n';
  return WriteTextFile(folder + kFoldResultsFile, text);
}

Result<std::vector<FoldResult>> ReadFoldResults(const std::string& folder) {
  return ReadList<FoldResult>(
      folder + kFoldResultsFile, [](std::string_view& line, FoldResult& result) {
        return TakeNumber(line, result.meets, kHex) && TakeNumber(line, result.nranks, kDecimal) &&
               TakeNumber(line, result.seq, kDecimal);
      });
}

}  // namespace deja::format

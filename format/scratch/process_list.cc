#include "format/scratch/process_list.h"

#include <algorithm>

#include "common/os/text_file.h"

namespace deja::format {

Status WriteProcessList(const std::string& path, const std::vector<ListedProcess>& processes) {
  std::string text;
  for (const ListedProcess& process : processes) {
    if ((process.name + process.folder).find_first_of("\t\n") != std::string::npos)
      return Fail(ErrorCode::kInvalidArgument, "writing: " + path + ": '" + process.folder +
                                                   "': a path with a tab or a line's end");
    text += process.name + '\t' + process.folder + '\n';
  }
  return WriteTextFile(path, text);
}

std::vector<ListedProcess> ReadProcessList(const std::string& path) {
  std::vector<ListedProcess> processes;
  const auto text = ReadTextFile(path);
  if (!text) return processes;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const size_t tab = line.find('\t');
    if (tab != std::string_view::npos)
      processes.push_back({std::string(line.substr(0, tab)), std::string(line.substr(tab + 1))});
  }
  return processes;
}

}  // namespace deja::format

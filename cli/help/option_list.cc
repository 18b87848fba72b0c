#include "cli/help/option_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace deja::cli {
namespace {

// "TEXT:{order,digest,full}" has three.
std::vector<std::string> ChoicesOf(const std::string& type) {
  const size_t begin = type.find('{');
  const size_t end = type.find('}', std::min(begin, type.size()));
  if (end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

bool IsSize(const std::string& type) {
  return type.find("SIZE") != std::string::npos;
}

// What stands for the value.
std::string ValueName(const std::string& type, const std::vector<std::string>& choices) {
  if (!choices.empty()) return fmt::format("{}", fmt::join(choices, "|"));
  if (IsSize(type)) return "SIZE";
  for (const char* number : {"INT", "UINT", "FLOAT"})
    if (type.substr(0, type.find(':')) == number) return "N";
  return type.substr(0, type.find(':'));
}

// "64 MiB" for 67108864.
std::string SizeText(const std::string& bytes) {
  const uint64_t number = std::strtoull(bytes.c_str(), nullptr, 10);
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  return number == 0 || number % kMiB != 0 ? bytes : fmt::format("{} MiB", number / kMiB);
}

OptionInfo InfoOf(const CLI::Option& option) {
  OptionInfo info;
  info.positional = !option.nonpositional();
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  if (info.positional) info.names.push_back(option.get_name());
  info.required = option.get_required();
  info.repeats = option.get_expected_max() > 1;
  info.group = option.get_group();
  info.text = option.get_description();
  const std::string type = option.get_type_name();
  if (option.get_items_expected_max() == 0 || type.empty()) return info;  // a flag
  info.choices = ChoicesOf(type);
  info.is_path = info.choices.empty() && type.substr(0, type.find(':')) == kPathType;
  info.value = ValueName(type, info.choices);
  if (const std::string value = option.get_default_str(); !value.empty())
    info.text += fmt::format(" (default: {})", IsSize(type) ? SizeText(value) : value);
  return info;
}

}  // namespace

std::string OptionInfo::Usage() const {
  std::string usage = fmt::format("{}", fmt::join(names, ", "));
  if (!positional && !value.empty()) usage += " " + value;
  return usage;
}

std::vector<OptionInfo> ListOptions(const CLI::App& app) {
  std::vector<OptionInfo> options;
  for (const CLI::Option* option : app.get_options()) options.push_back(InfoOf(*option));
  return options;
}

std::vector<std::string> ListGroups(const std::vector<OptionInfo>& options) {
  std::vector<std::string> groups;
  for (const OptionInfo& option : options)
    if (!option.positional && std::find(groups.begin(), groups.end(), option.group) == groups.end())
      groups.push_back(option.group);
  // The common ones last: what is a command's own is looked for more often.
  const auto common = std::find(groups.begin(), groups.end(), "Options");
  if (common != groups.end()) std::rotate(common, common + 1, groups.end());
  return groups;
}

std::vector<std::string> OptionNames(const std::vector<OptionInfo>& options) {
  std::vector<std::string> names;
  for (const OptionInfo& option : options)
    if (!option.positional) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

void SetGroups(CLI::App& app, const std::vector<OptionGroup>& groups) {
  for (const OptionGroup& group : groups)
    for (const char* name : group.names) app.get_option(name)->group(group.title);
}

void SetPaths(CLI::App& app, const std::vector<const char*>& names) {
  for (const char* name : names) app.get_option(name)->type_name(kPathType);
}

void AddTraceArgument(CLI::App& app, const char* name, std::string& path) {
  app.add_option(name, path, "A trace directory or a bundle")->required();
}

void AddBinariesOption(CLI::App& app, std::vector<std::string>& folders) {
  app.add_option("--binaries", folders,
                 "Folders with the program's binaries, if not where they ran");
  SetPaths(app, {"--binaries"});
}

}  // namespace deja::cli

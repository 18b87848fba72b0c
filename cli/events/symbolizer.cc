#include "cli/events/symbolizer.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "cli/events/short_name.h"

namespace deja::cli {
namespace {

namespace fs = std::filesystem;

const Dwfl_Callbacks kCallbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = nullptr,
};

std::string Demangle(const char* name) {
  if (name == nullptr) return "";
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result;
}

// "deja::Foo(int, char const*) const" -> "deja::Foo"; what a reader of a stack wants to see.
std::string WithoutArguments(std::string name) {
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    if (c == '<') ++depth;
    if (c == '>') --depth;
    if (c == '(' && depth == 0 && i > 0 && name.compare(i, 21, "(anonymous namespace)") != 0 &&
        name.compare(i, 2, "()") != 0)
      return name.substr(0, i);
    if (c == '(' && depth == 0 && name.compare(i, 2, "()") == 0 &&
        name.compare(i >= 8 ? i - 8 : 0, 8, "operator") != 0)
      return name.substr(0, i);
  }
  return name;
}

// A function of Python's is the module "python:FUNCTION:FILE", and the offset in it is the line.
// Imported stacks have functions of C++ as well, whose names have colons in pairs.
bool ResolvePython(const std::string& path, SourceFrame& frame) {
  constexpr std::string_view kPython = "python:";
  size_t end = path.find(':', kPython.size());
  while (end != std::string::npos && path.compare(end, 2, "::") == 0) end = path.find(':', end + 2);
  if (path.rfind(kPython, 0) != 0 || end == std::string::npos) return false;
  frame.python = true;
  frame.function = path.substr(kPython.size(), end - kPython.size());
  frame.file = frame.module = path.substr(end + 1);
  frame.line = static_cast<int>(frame.offset);
  return true;
}

// A line of the C library says nothing of the program. To read its debug information, which
// distributions compress, takes longer than all else of a command.
bool IsCLibrary(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return name.starts_with("libc.so.") || name.starts_with("libc-2.") ||
         name.starts_with("ld-linux");
}

struct Module {
  Dwfl* dwfl = nullptr;
  Dwfl_Module* module = nullptr;
};

// The compilation unit that has code at `address`. Compilers that write no .debug_aranges (clang)
// leave it to the reader to look through all units.
Dwarf_Die* UnitAt(Dwfl_Module* module, Dwarf_Addr address, Dwarf_Addr* bias) {
  if (Dwarf_Die* unit = dwfl_module_addrdie(module, address, bias)) return unit;
  for (Dwarf_Die* unit = dwfl_module_nextcu(module, nullptr, bias); unit != nullptr;
       unit = dwfl_module_nextcu(module, unit, bias))
    if (dwarf_haspc(unit, address - *bias) > 0) return unit;
  return nullptr;
}

void AddSource(Dwarf_Die* unit, Dwarf_Addr address, SourceFrame& frame) {
  Dwarf_Line* line = dwarf_getsrc_die(unit, address);
  if (line == nullptr) return;
  int number = 0;
  const char* file = dwarf_linesrc(line, nullptr, nullptr);
  if (file == nullptr || dwarf_lineno(line, &number) != 0) return;
  frame.file = file;
  frame.line = number;
}

// The function's name and, where its debug information has it, its linkage name demangled.
std::string DieName(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) != nullptr)
    return WithoutArguments(Demangle(dwarf_formstring(&attribute)));
  const char* name = dwarf_diename(die);
  return name == nullptr ? "" : name;
}

// Call sites of the functions that were inlined at `address`, innermost first; fills
// frames[0].function and appends one frame per enclosing function.
void AddInlined(Dwarf_Die* unit, Dwarf_Addr address, std::vector<SourceFrame>& frames) {
  Dwarf_Die* scopes = nullptr;
  int count = dwarf_getscopes(unit, address, &scopes);
  if (count <= 0) return;
  Dwarf_Die innermost = scopes[0];
  std::free(scopes);
  count = dwarf_getscopes_die(&innermost, &scopes);
  if (count <= 0) return;
  for (int i = 0; i < count; ++i) {
    int tag = dwarf_tag(&scopes[i]);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    frames.back().function = DieName(&scopes[i]);
    if (tag == DW_TAG_subprogram) break;
    SourceFrame outer = frames.back();
    frames.back().inlined = true;
    Dwarf_Attribute attribute;
    Dwarf_Word word = 0;
    outer.function.clear();
    if (dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_line, &attribute), &word) == 0)
      outer.line = static_cast<int>(word);
    Dwarf_Files* files = nullptr;
    size_t file_count = 0;
    Dwarf_Die cu;
    if (dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_file, &attribute), &word) == 0 &&
        dwarf_diecu(&scopes[i], &cu, nullptr, nullptr) != nullptr &&
        dwarf_getsrcfiles(&cu, &files, &file_count) == 0 && word < file_count)
      outer.file = dwarf_filesrc(files, word, nullptr, nullptr);
    frames.push_back(std::move(outer));
  }
  std::free(scopes);
}

}  // namespace

std::string SourceFrame::Place() const {
  if (!file.empty()) return fmt::format("{}:{}", fs::path(file).filename().string(), line);
  return fmt::format("{}+{:#x}", module.empty() ? "?" : fs::path(module).filename().string(),
                     offset);
}

std::string SourceFrame::Describe() const {
  if (function.empty()) return Place();
  if (python) return fmt::format("{} in {}", Place(), function);
  return fmt::format("{} ({})", ShortName(function), Place());
}

bool IsDejaModule(const std::string& path) {
  const fs::path file(path);
  const std::string name = file.filename().string();
  if (name.ends_with(".py")) return path.find("/python/deja/") != std::string::npos;
  return name.rfind("libdeja_", 0) == 0 || name.rfind("libnccl.so", 0) == 0;
}

struct Symbolizer::Impl {
  std::vector<std::string> directories;
  std::map<std::string, Module> modules;  // by path and build id

  // Loads `path`; keeps it only if its build id is the wanted one (any will do if none is wanted).
  static std::optional<Module> Load(const std::string& path, const std::string& build_id) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return std::nullopt;
    Module loaded;
    loaded.dwfl = dwfl_begin(&kCallbacks);
    dwfl_report_begin(loaded.dwfl);
    loaded.module = dwfl_report_elf(loaded.dwfl, path.c_str(), path.c_str(), -1, 0, true);
    dwfl_report_end(loaded.dwfl, nullptr, nullptr);
    const unsigned char* bits = nullptr;
    GElf_Addr address = 0;
    int length =
        loaded.module == nullptr ? -1 : dwfl_module_build_id(loaded.module, &bits, &address);
    bool matches = loaded.module != nullptr &&
                   (build_id.empty() ||
                    (length > 0 && build_id == std::string_view(reinterpret_cast<const char*>(bits),
                                                                static_cast<size_t>(length))));
    if (matches) return loaded;
    dwfl_end(loaded.dwfl);
    return std::nullopt;
  }

  Module& Find(const std::string& path, const std::string& build_id) {
    auto [it, inserted] = modules.try_emplace(path + '\0' + build_id);
    if (!inserted) return it->second;
    std::optional<Module> found = Load(path, build_id);
    for (const std::string& directory : directories)
      if (!found) found = Load(directory + "/" + fs::path(path).filename().string(), build_id);
    if (found) it->second = *found;
    return it->second;
  }
};

Symbolizer::Symbolizer() : impl_(std::make_unique<Impl>()) {}

Symbolizer::~Symbolizer() {
  for (auto& [key, module] : impl_->modules)
    if (module.dwfl != nullptr) dwfl_end(module.dwfl);
}

void Symbolizer::AddDirectory(const std::string& directory) {
  impl_->directories.push_back(directory);
}

std::vector<SourceFrame> Symbolizer::Resolve(const std::string& module_path,
                                             const std::string& build_id, uint64_t offset,
                                             bool is_return_address) {
  SourceFrame frame;
  frame.module = module_path;
  frame.offset = offset;
  if (ResolvePython(module_path, frame)) return {frame};
  std::vector<SourceFrame> frames = {frame};
  Module& module = impl_->Find(module_path, build_id);
  if (module.module == nullptr) return frames;
  Dwarf_Addr address = is_return_address && offset > 0 ? offset - 1 : offset;
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = IsCLibrary(module_path) ? nullptr : UnitAt(module.module, address, &bias);
  if (unit != nullptr) {
    AddSource(unit, address - bias, frames.back());
    AddInlined(unit, address - bias, frames);
  }
  // For the function that really is there the symbol table knows the qualified name, which debug
  // information leaves out for members of anonymous namespaces.
  std::string symbol = WithoutArguments(Demangle(dwfl_module_addrname(module.module, address)));
  if (!symbol.empty()) frames.back().function = symbol;
  return frames;
}

}  // namespace deja::cli

#include "cli/replay/start/newer_nccl.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string_view>

namespace deja::cli {
namespace {

constexpr char kEnd[] = "deja_newer_nccl_call";
constexpr size_t kMostFunctions = 1000;
constexpr size_t kMostName = 200;
constexpr size_t kPage = 4096;

// A trace is untrusted: what is no name of a function of NCCL's is left out.
bool IsName(std::string_view name) {
  const std::string_view text = name.starts_with('p') ? name.substr(1) : name;
  return text.starts_with("nccl") && name.size() <= kMostName &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return isalnum(c) || c == '_'; });
}

template <typename T>
void Append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// endbr64; lea rdi, [rip + name]; jmp [rip + slot]: relative to the end of each instruction.
constexpr size_t kStubBytes = 24;
std::string Stub(size_t at, size_t name, size_t slot) {
  std::string code("\xf3\x0f\x1e\xfa\x48\x8d\x3d", 7);
  Append(code, static_cast<int32_t>(name - (at + 11)));
  code += "\xff\x25";
  Append(code, static_cast<int32_t>(slot - (at + 17)));
  code.resize(kStubBytes, '\xcc');
  return code;
}

// Where the parts are, in the file and in memory alike.
struct Layout {
  size_t symbols = 0;
  size_t strings = 0;
  size_t string_bytes = 0;
  size_t hash = 0;
  size_t relocations = 0;
  size_t code = 0;
  size_t dynamic = 0;  // begins the writable part
  size_t slot = 0;
  size_t end = 0;
};
constexpr size_t kHeaders = sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Phdr);
constexpr size_t kDynamicEntries = 9;

std::string Headers(const Layout& at) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 4;
  const auto part = [](uint32_t type, uint32_t flags, size_t begin, size_t end, size_t align) {
    return Elf64_Phdr{type, flags, begin, begin, begin, end - begin, end - begin, align};
  };
  std::string bytes;
  Append(bytes, header);
  Append(bytes, part(PT_LOAD, PF_R | PF_X, 0, at.dynamic, kPage));
  Append(bytes, part(PT_LOAD, PF_R | PF_W, at.dynamic, at.end, kPage));
  Append(bytes, part(PT_DYNAMIC, PF_R | PF_W, at.dynamic, at.slot, 8));
  Append(bytes, part(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16));
  return bytes;
}

std::string Dynamic(const Layout& at) {
  std::string bytes;
  const auto add = [&bytes](Elf64_Sxword tag, size_t value) {
    Append(bytes, Elf64_Dyn{tag, {value}});
  };
  add(DT_HASH, at.hash);
  add(DT_SYMTAB, at.symbols);
  add(DT_SYMENT, sizeof(Elf64_Sym));
  add(DT_STRTAB, at.strings);
  add(DT_STRSZ, at.string_bytes);
  add(DT_RELA, at.relocations);
  add(DT_RELASZ, sizeof(Elf64_Rela));
  add(DT_RELAENT, sizeof(Elf64_Rela));
  add(DT_NULL, 0);
  return bytes;
}

// One bucket: all symbols in a chain.
std::string Hash(size_t symbols) {
  std::string bytes;
  Append(bytes, uint32_t{1});
  Append(bytes, static_cast<uint32_t>(symbols));
  Append(bytes, static_cast<uint32_t>(symbols - 1));
  for (uint32_t i = 0; i < symbols; ++i) Append(bytes, i == 0 ? 0 : i - 1);
  return bytes;
}

}  // namespace

std::vector<std::string> NewerNcclFunctions(const format::RankReader& reader) {
  std::vector<std::string> names;
  const auto cursor = reader.Events();
  while (const format::Event* event =
             cursor->NextOf(format::KindBit(format::EventKind::kDegraded))) {
    const auto* degraded = event->As<format::Degraded>();
    if (degraded == nullptr || !IsName(degraded->function)) continue;
    std::string name(degraded->function);
    if (names.size() < kMostFunctions && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  return names;
}

std::string NewerNcclLibrary(const std::vector<std::string>& functions) {
  std::string strings(1, '\0');
  std::vector<size_t> names;
  for (const std::string& function : functions) {
    names.push_back(strings.size());
    strings.append(function).push_back('\0');
  }
  const size_t end_name = strings.size();
  strings.append(kEnd).push_back('\0');

  const size_t symbol_count = functions.size() + 2;  // none, and the one that all lead to
  const std::string hash = Hash(symbol_count);
  const auto aligned = [](size_t offset, size_t to) { return (offset + to - 1) / to * to; };
  Layout at;
  at.symbols = aligned(kHeaders, 8);
  at.strings = at.symbols + symbol_count * sizeof(Elf64_Sym);
  at.string_bytes = strings.size();
  at.hash = aligned(at.strings + strings.size(), 8);
  at.relocations = aligned(at.hash + hash.size(), 8);
  at.code = aligned(at.relocations + sizeof(Elf64_Rela), 16);
  at.dynamic = aligned(at.code + functions.size() * kStubBytes, kPage);
  at.slot = at.dynamic + kDynamicEntries * sizeof(Elf64_Dyn);
  at.end = at.slot + sizeof(uint64_t);

  std::string bytes = Headers(at);
  bytes.resize(at.symbols);
  Append(bytes, Elf64_Sym{});
  const auto global = static_cast<unsigned char>(ELF64_ST_INFO(STB_GLOBAL, STT_FUNC));
  Append(bytes, Elf64_Sym{static_cast<Elf64_Word>(end_name), global, STV_DEFAULT, SHN_UNDEF, 0, 0});
  // Any section but none: there are no section headers.
  for (size_t i = 0; i < functions.size(); ++i)
    Append(bytes, Elf64_Sym{static_cast<Elf64_Word>(names[i]), global, STV_DEFAULT, 1,
                            at.code + i * kStubBytes, kStubBytes});
  bytes += strings;
  bytes.resize(at.hash);
  bytes += hash;
  bytes.resize(at.relocations);
  Append(bytes, Elf64_Rela{at.slot, ELF64_R_INFO(1, R_X86_64_GLOB_DAT), 0});
  bytes.resize(at.code);
  for (size_t i = 0; i < functions.size(); ++i)
    bytes += Stub(at.code + i * kStubBytes, at.strings + names[i], at.slot);
  bytes.resize(at.dynamic);
  bytes += Dynamic(at);
  bytes.resize(at.end);
  return bytes;
}

Result<std::string> MakeNewerNccl(const format::RankReader& reader, const std::string& folder) {
  const std::vector<std::string> functions = NewerNcclFunctions(reader);
  if (functions.empty()) return std::string();
  std::string path = folder + "/libdeja_newer_nccl.so";
  std::ofstream file(path, std::ios::binary);
  file << NewerNcclLibrary(functions);
  file.close();
  if (!file) return FailErrno(fmt::format("replaying: writing '{}'", path), errno);
  return path;
}

}  // namespace deja::cli

#include "cli/pack/redactor.h"

#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <utility>
#include <variant>

#include "api/libc_table.h"
#include "common/env_vars.h"
#include "common/secrets/secret_files.h"
#include "common/secrets/secret_names.h"
#include "digest/digest.h"
#include "format/reader/file_ranges.h"

namespace deja::cli {
namespace {

using api::LibcApi;
using format::Tensor;

constexpr size_t kUniqueIdBytes = 128;
constexpr size_t kIdAddress = 8;     // where NCCL has an address in it, after a number
constexpr size_t kShortestText = 6;  // runs of characters in bytes that are looked at as text
constexpr uint64_t kMostTensor = 256u << 20;  // of bytes, that is looked into
constexpr std::string_view kRule = "redact";

// Beginnings of names whose values stay.
constexpr std::string_view kAllowedPrefixes[] = {
    "NCCL_",     "CUDA_",      "TORCH",       "PYTORCH_",  "PYTHON", "OMP_",    "MKL_",
    "OPENBLAS_", "KMP_",       "GOMP_",       "ONEDNN_",   "DNNL_",  "GLIBC_",  "MALLOC_",
    "LC_",       "SLURM_",     "OMPI_",       "PMI_",      "PMIX_",  "PRTE_",   "MPICH_",
    "MV2_",      "I_MPI_",     "HYDRA_",      "HYDI_",     "UCX_",   "UCC_",    "FI_",
    "GLOO_",     "XLA_",       "JAX_",        "TF_",       "NVTE_",  "CUBLAS_", "CUDNN_",
    "NVIDIA_",   "HIP_",       "ROCR_",       "RCCL_",     "HSA_",   "NUMBA_",  "TRITON_",
    "FSDP_",     "DEEPSPEED_", "ACCELERATE_", "MEGATRON_", "GROUP_", "ROLE_",   "LOCAL_",
    "NUMEXPR_",  "VECLIB_",    "TOKENIZERS_",
};
constexpr std::string_view kAllowedNames[] = {
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LD_BIND_NOW",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "HOME",
    "USER",
    "LOGNAME",
    "HOSTNAME",
    "SHELL",
    "PWD",
    "OLDPWD",
    "TMPDIR",
    env::kThreads.name,
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "HF_HOME",
    "SHLVL",
    "_",
    "COLUMNS",
    "LINES",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "CC",
    "CXX",
    "LS_COLORS",
    "DEBIAN_FRONTEND",
    "XDG_RUNTIME_DIR",
    "NODE_RANK",
    "MODULEPATH",
    "LOADEDMODULES",
};

// Parts of the names of variables above whose values name machines, accounts and projects.
constexpr std::string_view kDeniedParts[] = {"NODELIST",     "_ACCOUNT",           "JOB_NAME",
                                             "CLUSTER_NAME", "_COMMENT",           "TOPOLOGY_ADDR",
                                             "_QOS",         "_DISTRIBUTION_HOSTS"};

// Says nothing of its origin, whatever the name.
bool IsHarmlessValue(std::string_view value) {
  constexpr size_t kMostDigits = 6;
  const bool number = std::all_of(value.begin(), value.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == ',' || c == 'e';
  });
  return IsFlagValue(value) || (number && value.size() <= kMostDigits);
}

// What a recording has put in place of a secret.
bool IsMask(std::string_view value) {
  std::string mask(value.size(), ' ');
  WriteMask(mask);
  return !value.empty() && value == mask;
}

bool IsTextByte(char c) {
  return (c >= ' ' && c <= '~') || c == '\t' || c == '\n' || c == '\r';
}

bool IsByteTensor(const Tensor& tensor) {
  return tensor.dtype == 0 || tensor.dtype == 1 || tensor.dtype == format::kRawBytes;
}

// As preload/files/machine_files.h has it.
uint64_t KeyOfPath(std::string_view path) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const unsigned char c : path) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

// The numbers and addresses of an answer of getaddrinfo.
template <typename Each>
void ForEachAddress(std::string_view data, const Each& each) {
  constexpr size_t kNumbers = 5 * sizeof(uint32_t);
  while (data.size() >= kNumbers) {
    uint32_t numbers[5];
    std::memcpy(numbers, data.data(), sizeof numbers);
    data.remove_prefix(kNumbers);
    const uint32_t size = numbers[4];
    if (size > data.size()) return;
    each(data.substr(0, size));
    data.remove_prefix(size);
    uint32_t name = 0;
    if (data.size() < sizeof name) return;
    std::memcpy(&name, data.data(), sizeof name);
    data.remove_prefix(sizeof name);
    if (name != UINT32_MAX) data.remove_prefix(std::min<size_t>(name, data.size()));
  }
}

}  // namespace

bool IsAllowedVariable(std::string_view name) {
  if (std::any_of(std::begin(kDeniedParts), std::end(kDeniedParts), [name](std::string_view part) {
        return name.find(part) != std::string_view::npos;
      }))
    return false;
  return std::find(std::begin(kAllowedNames), std::end(kAllowedNames), name) !=
             std::end(kAllowedNames) ||
         std::any_of(
             std::begin(kAllowedPrefixes), std::end(kAllowedPrefixes),
             [name](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; });
}

// ---- What is learnt

Status Redactor::Learn(const format::RankReader& reader) {
  LearnHeader(reader.header());
  using format::EventKind;
  using format::KindBit;
  constexpr uint64_t kKinds = KindBit(EventKind::kInput) | KindBit(EventKind::kConnectionOpened) |
                              KindBit(EventKind::kTransfer) | KindBit(EventKind::kCallEnter) |
                              KindBit(EventKind::kCallLeave) | KindBit(EventKind::kChild) |
                              KindBit(EventKind::kProcessExit);
  const auto cursor = reader.Events();
  while (const format::Event* event = cursor->NextOf(kKinds)) LearnEvent(*event);
  return {};
}

void Redactor::LearnHeader(const format::TraceHeader& header) {
  const format::ProcessInfo& process = header.process;
  names_.LearnHost(process.hostname);
  names_.LearnUser(process.user);
  names_.LearnWorkingFolder(process.working_directory);
  for (const std::string_view entry : process.environment) {
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    const std::string_view value = entry.substr(equals + 1);
    if (name == "USER" || name == "LOGNAME" || name == "SLURM_JOB_USER") names_.LearnUser(value);
    if (name == "HOSTNAME" || name == "MASTER_ADDR" || name == "SLURMD_NODENAME" ||
        name == "SLURM_SUBMIT_HOST" || name == "SLURM_LAUNCH_NODE_IPADDR")
      names_.LearnHost(value);
    constexpr std::string_view kHome = "/home/";
    if (name == "HOME" && value.substr(0, kHome.size()) == kHome)
      names_.LearnUser(value.substr(kHome.size(), value.find('/', kHome.size()) - kHome.size()));
    names_.LearnAddresses(value);
    const bool stays = IsAllowedVariable(name) || rule_.IsKept(name) || IsHarmlessValue(value);
    if (!stays && !IsMask(value)) names_.LearnValue(name, value);
  }
  for (const std::string_view argument : process.argv) names_.LearnAddresses(argument);
}

// Unique ids hold the address of their maker. Their other bytes are a number.
void Redactor::LearnIds(std::string_view blob) {
  for (size_t at = 0; at + kUniqueIdBytes <= blob.size(); at += kUniqueIdBytes) {
    const std::string id(blob.substr(at, kUniqueIdBytes));
    std::string redacted = id;
    sa_family_t family = 0;
    std::memcpy(&family, id.data() + kIdAddress, sizeof family);
    if (family != AF_INET && family != AF_INET6) continue;
    if (names_.ReplaceSocketAddress(std::span(redacted).subspan(kIdAddress)))
      names_.LearnBytes(id, redacted);
  }
}

void Redactor::LearnEvent(const format::Event& event) {
  const auto socket_address = [this](std::string_view address) {
    std::string copy(address);
    names_.ReplaceSocketAddress(copy);
  };
  if (const auto* connection = event.As<format::ConnectionOpened>()) {
    socket_address(connection->local);
    socket_address(connection->remote);
  } else if (const auto* transfer = event.As<format::Transfer>()) {
    socket_address(transfer->address);
  } else if (const auto* enter = event.As<format::CallEnter>()) {
    LearnIds(enter->blob);
  } else if (const auto* leave = event.As<format::CallLeave>()) {
    LearnIds(leave->blob);
  } else if (const auto* child = event.As<format::Child>()) {
    names_.LearnAddresses(child->arguments);
  } else if (const auto* exit = event.As<format::ProcessExit>()) {
    names_.LearnAddresses(exit->arguments);
  } else if (const auto* input = event.As<format::Input>()) {
    const auto api = static_cast<LibcApi>(input->api);
    if (api == LibcApi::kgetaddrinfo) ForEachAddress(input->data, socket_address);
    if (api == LibcApi::kgethostname)
      names_.LearnHost(input->data.substr(0, input->data.find('\0')));
  }
}

Status Redactor::Settle() {
  names_.Settle();
  return {};
}

// ---- Texts and bytes

std::string_view Redactor::Keep(std::string text) {
  return event_texts_.emplace_back(std::move(text));
}

bool Redactor::Text(std::string_view& text) {
  std::string copy(text);
  const bool masked = !rule_.MaskText(copy).empty();
  if (!names_.ReplaceAll(copy) && !masked) return false;
  text = Keep(std::move(copy));
  return true;
}

bool Redactor::Path(std::string_view& path) {
  if (path.empty()) return false;
  std::string copy = names_.OfPath(path);
  rule_.MaskText(copy);
  if (copy == path) return false;
  path = Keep(std::move(copy));
  return true;
}

// Secrets in runs of text, and names that were learnt anywhere.
bool Redactor::RedactBytes(std::span<char> bytes) {
  bool changed = !rule_.MaskCounted(bytes).empty();
  for (size_t at = 0; at < bytes.size();) {
    size_t end = at;
    while (end < bytes.size() && IsTextByte(bytes[end])) ++end;
    if (end - at >= kShortestText)
      changed = !rule_.MaskText(bytes.subspan(at, end - at)).empty() || changed;
    at = end + 1;
  }
  return names_.ReplaceLearnt(bytes) || changed;
}

bool Redactor::Bytes(std::string_view& bytes) {
  if (bytes.empty()) return false;
  std::string copy(bytes);
  if (!RedactBytes(copy)) return false;
  bytes = Keep(std::move(copy));
  return true;
}

bool Redactor::SocketAddress(std::string_view& address) {
  std::string copy(address);
  if (!names_.ReplaceSocketAddress(copy)) return false;
  address = Keep(std::move(copy));
  return true;
}

// ---- Payloads

std::string Redactor::ReadPayload(const Hash128& hash) const {
  const uint64_t size = reader_->PayloadSize(hash).value_or(0);
  if (size == 0 || size > kMostTensor) return {};
  std::string bytes(size, '\0');
  const Status read = reader_->ReadPayload(hash, std::as_writable_bytes(std::span(bytes)));
  return read ? bytes : std::string();
}

Hash128 Redactor::Replace(const Hash128& hash, std::string_view bytes) {
  const Hash128 now = digest::HashBytes(std::as_bytes(std::span(bytes)));
  replacements_[hash].insert(now);
  if (now != hash) made_.try_emplace(now, bytes);
  return now;
}

std::vector<Hash128> Redactor::ReplacementsOf(const Hash128& hash) const {
  const auto it = replacements_.find(hash);
  return it == replacements_.end() ? std::vector<Hash128>{hash}
                                   : std::vector<Hash128>(it->second.begin(), it->second.end());
}

std::span<const std::byte> Redactor::BytesOf(const Hash128& hash) const {
  const auto it = made_.find(hash);
  return it == made_.end() ? std::span<const std::byte>() : std::as_bytes(std::span(it->second));
}

// Numbers stay. Bytes that the program computes itself may differ in a replay.
bool Redactor::RewriteTensor(Tensor& tensor) {
  const bool kept = tensor.payload == static_cast<uint32_t>(format::PayloadState::kKept);
  if (!IsByteTensor(tensor)) {
    if (kept) KeepAsItIs(tensor.hash);
    return false;
  }
  if (tensor.hash.IsZero()) return false;
  std::string bytes = kept ? ReadPayload(tensor.hash) : std::string();
  if (!bytes.empty() && !RedactBytes(bytes)) {
    KeepAsItIs(tensor.hash);
    return false;
  }
  tensor.stats = format::TensorStats{};
  if (!bytes.empty()) {
    tensor.hash = Replace(tensor.hash, bytes);
    return true;
  }
  if (kept) LeaveOut(tensor.hash);
  tensor.hash = Hash128{};
  tensor.payload = static_cast<uint32_t>(format::PayloadState::kNotKept);
  return true;
}

// ---- The header

// A variable as it is given away; `rule`: why its value is another.
std::string Redactor::Variable(std::string_view entry, std::string_view& rule) {
  std::string text(entry);
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return text;
  const std::string name = text.substr(0, equals);
  std::string value = text.substr(equals + 1);
  if (IsMask(value)) return text;
  rule = rule_.MaskValue(name, value);
  if (!rule_.IsKept(name) && rule.empty()) {
    if (IsAllowedVariable(name) || IsHarmlessValue(value)) {
      names_.ReplaceAll(value);
    } else {
      value = names_.Of(StandInKind::kValue, value);
      rule = kRule;
    }
  }
  return name + "=" + value;
}

void Redactor::Rewrite(format::TraceHeader& header) {
  const auto keep = [this](std::string text) -> std::string_view {
    return header_texts_.emplace_back(std::move(text));
  };
  const auto learnt = [this](std::string_view text) {
    std::string copy(text);
    names_.ReplaceLearnt(copy);
    return copy;
  };
  format::ProcessInfo& process = header.process;
  header.redacted = true;
  header.tail.path = {};
  process.cgroup_file = {};
  process.hostname = keep(learnt(process.hostname));
  process.user = keep(learnt(process.user));
  process.executable = keep(names_.OfPath(process.executable));
  process.working_directory = keep(names_.OfPath(process.working_directory));
  process.nccl_path = keep(names_.OfPath(process.nccl_path));
  process.masked_by.resize(process.masked.size());
  const auto note = [&](std::string what, std::string_view rule) {
    const bool known =
        std::find(process.masked.begin(), process.masked.end(), what) != process.masked.end();
    if (rule.empty() || known) return;
    process.masked.push_back(keep(std::move(what)));
    process.masked_by.push_back(rule);
  };
  std::string previous;
  for (size_t i = 0; i < process.argv.size(); ++i) {
    std::string argument(process.argv[i]);
    const std::string_view rule = rule_.MaskArgument(previous, argument);
    previous = process.argv[i];
    names_.ReplaceAll(argument);
    process.argv[i] = keep(std::move(argument));
    note("argv[" + std::to_string(i) + "]", rule);
  }
  for (std::string_view& entry : process.environment) {
    std::string_view rule;
    const std::string name(entry.substr(0, entry.find('=')));
    entry = keep(Variable(entry, rule));
    note(name, rule);
  }
}

// ---- Events

void Redactor::Begin(const format::RankReader& reader) {
  reader_ = &reader;
  received_ = std::make_unique<ReceivedBytes>(
      reader,
      [this](std::string_view path, std::string& bytes) {
        if (!IsSecretFile(path)) {
          RedactBytes(bytes);
          return;
        }
        // Lines and lengths stay, so that a program can read it.
        for (char& c : bytes)
          if (std::isalnum(static_cast<unsigned char>(c)) != 0) c = 'x';
      },
      ReceivedBytes::Limits{});
}

void Redactor::Rewrite(format::Event& event) {
  event_texts_.clear();
  std::visit([this](auto& body) { return RewriteBody(body); }, event.body);
}

bool Redactor::RewriteBody(format::CallEnter& enter) {
  bool changed = false;
  for (Tensor& tensor : enter.inputs) changed = RewriteTensor(tensor) || changed;
  changed = Bytes(enter.blob) || changed;
  return Text(enter.text) || changed;
}

bool Redactor::RewriteBody(format::CallLeave& leave) {
  return Bytes(leave.blob);
}

bool Redactor::RewriteBody(format::CallResults& results) {
  bool changed = false;
  for (Tensor& tensor : results.outputs) changed = RewriteTensor(tensor) || changed;
  return changed;
}

bool Redactor::RewriteBody(format::Input& input) {
  if (!input.hash.IsZero()) KeepAsItIs(input.hash);
  if (static_cast<LibcApi>(input.api) == LibcApi::kcreat) {
    if (!Path(input.data)) return false;
    input.key = KeyOfPath(input.data);
    return true;
  }
  const bool changed = Bytes(input.data);
  if (!api::AsksForName(input.api)) return changed;
  std::string answer(input.data);
  if (!names_.ReplaceKnownAddresses(answer)) return changed;
  input.data = Keep(std::move(answer));
  return true;
}

bool Redactor::RewriteBody(format::Snapshot& snapshot) {
  // States of generators are numbers.
  constexpr std::string_view kGenerators = "rng/";
  if (snapshot.name.substr(0, kGenerators.size()) == kGenerators) return false;
  const bool changed = RewriteTensor(snapshot.tensor);
  return Text(snapshot.name) || changed;
}

bool Redactor::RewriteBody(format::Note& note) {
  return Text(note.text);
}

bool Redactor::RewriteBody(format::CommCreated& comm) {
  return Text(comm.name);
}

bool Redactor::RewriteBody(format::ModuleLoaded& module) {
  constexpr std::string_view kPython = "python:";
  if (module.path.substr(0, kPython.size()) != kPython) return Path(module.path);
  // python:FUNCTION:FILE
  const size_t colon = module.path.find(':', kPython.size());
  if (colon == std::string_view::npos) return false;
  std::string_view file = module.path.substr(colon + 1);
  const std::string function(module.path.substr(0, colon + 1));
  if (!Path(file)) return false;
  module.path = Keep(function + std::string(file));
  return true;
}

bool Redactor::RewriteBody(format::Degraded& degraded) {
  return Text(degraded.reason);
}

bool Redactor::RewriteBody(format::WindowChange& change) {
  return Text(change.reason);
}

// Names in a folder: for each a letter, the name, a zero.
bool Redactor::RewriteEntries(format::InputFile& file) {
  if (!file.entries_hash.IsZero()) KeepAsItIs(file.entries_hash);
  if (file.entries.empty() || file.program) return false;
  constexpr uint32_t kTypeBits = 0170000;
  const uint32_t type = file.mode & kTypeBits;
  if (type == 0120000) return Path(file.entries);  // what a link says
  return type == 0040000 && Bytes(file.entries);
}

bool Redactor::RewriteBody(format::InputFile& file) {
  const bool entries = RewriteEntries(file);
  return Path(file.path) || entries;
}

bool Redactor::RewriteBody(format::FileRead& read) {
  if (read.payload != static_cast<uint32_t>(format::PayloadState::kKept)) return false;
  std::string hashes;
  for (const format::FileRange& range : format::RangesOf(read)) {
    const ReceivedBytes::Bytes now = received_->OfRange(read.file, range.begin, range.size);
    if (!now) LeaveOut(range.hash);
    const Hash128 hash = now ? Replace(range.hash, *now) : range.hash;
    hashes.append(reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size());
  }
  if (hashes.size() != read.hashes.size()) return false;  // no trace of Deja's
  if (hashes == read.hashes) return false;
  read.hashes = Keep(std::move(hashes));
  return true;
}

bool Redactor::RewriteBody(format::ConnectionOpened& connection) {
  const bool name = Text(connection.name);
  const bool local = SocketAddress(connection.local);
  return SocketAddress(connection.remote) || local || name;
}

// The trace has no bytes of what is sent, so their hash cannot be made again.
bool Redactor::RewriteBody(format::Transfer& transfer) {
  const ReceivedBytes::Bytes now = received_->OfTransfer(transfer);
  if (!transfer.hash.IsZero()) {
    if (now)
      transfer.hash = Replace(transfer.hash, *now);
    else
      LeaveOut(transfer.hash);
  } else if (now) {
    transfer.data = *now;
  } else {
    Bytes(transfer.data);
  }
  transfer.sent_hash = 0;
  SocketAddress(transfer.address);
  return true;
}

// Each argument of a program ends with a zero.
bool Redactor::RewriteArguments(std::string_view& arguments) {
  std::string copy(arguments);
  std::string_view previous;
  for (size_t at = 0; at < copy.size();) {
    const std::string_view before = arguments.substr(at, arguments.find('\0', at) - at);
    std::string argument(before);
    (void)rule_.MaskArgument(previous, argument);
    names_.ReplaceAll(argument);
    copy.replace(at, before.size(), argument);
    previous = before;
    at += before.size() + 1;
  }
  if (copy == arguments) return false;
  arguments = Keep(std::move(copy));
  return true;
}

bool Redactor::RewriteBody(format::ProcessExit& exit) {
  const bool arguments = RewriteArguments(exit.arguments);
  return Path(exit.program) || arguments;
}

bool Redactor::RewriteBody(format::Child& child) {
  const bool arguments = RewriteArguments(child.arguments);
  return Path(child.program) || arguments;
}

}  // namespace deja::cli

#include "preload/calls/buffers.h"

#include <optional>
#include <string_view>

#include "format/wire/messages.h"

namespace deja::preload {
namespace {

// Bytes of an element by ncclDataType_t; 0 for types that did not exist when this was written.
constexpr uint8_t kElementSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

uint64_t SizeOfType(uint64_t dtype) {
  if (dtype == format::kRawBytes) return 1;
  return dtype < sizeof kElementSizes ? kElementSizes[dtype] : 0;
}

// What a buffer holds whose type in C says it, as ncclDataType_t.
struct CType {
  std::string_view type;
  uint32_t dtype;
};
constexpr CType kCTypes[] = {
    {"unsigned int*", 3}, {"unsigned long long*", 5}, {"float*", 7}, {"double*", 8}};

// Nothing if neither an argument nor the parameter's type says it.
std::optional<uint32_t> ElementTypeOf(const api::ApiInfo& info, const uint64_t* args,
                                      api::Role role) {
  if (const int i = info.Find(api::Role::kDType); i >= 0) return static_cast<uint32_t>(args[i]);
  const int buffer = info.Find(role);
  for (const CType& known : kCTypes)
    if (buffer >= 0 && known.type == info.params[buffer].type) return known.dtype;
  return std::nullopt;
}

bool IsRoot(const api::ApiInfo& info, const uint64_t* args, int rank) {
  int i = info.Find(api::Role::kRoot);
  return i >= 0 && static_cast<int>(args[i]) == rank;
}

BufferUse Describe(const api::ApiInfo& info, const uint64_t* args, int arg, int nranks, int rank) {
  BufferUse use;
  api::Role role = info.params[arg].role;
  uint64_t bytes = BufferBytes(info, args, role, nranks, rank);
  if (bytes == 0 || args[arg] == 0) return use;
  use.data = reinterpret_cast<const void*>(args[arg]);
  use.elements = BufferElements(info, args, role, nranks, rank);
  use.bytes = bytes;
  use.dtype = ElementTypeOf(info, args, role).value_or(0);
  use.arg = arg;
  return use;
}

}  // namespace

uint64_t BufferElements(const api::ApiInfo& info, const uint64_t* args, api::Role role, int nranks,
                        int rank) {
  int count_arg = info.Find(api::Role::kCount);
  if (count_arg < 0)
    count_arg = info.Find(IsInputRole(role) ? api::Role::kInCount : api::Role::kOutCount);
  if (count_arg < 0 || !(IsInputRole(role) || IsOutputRole(role))) return 0;
  if (api::OnlyOnRoot(role) && !IsRoot(info, args, rank)) return 0;
  uint64_t count = args[count_arg];
  if (!api::TimesRanks(role)) return count;
  uint64_t elements;
  if (nranks < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(nranks), &elements))
    return 0;
  return elements;
}

uint64_t BufferBytes(const api::ApiInfo& info, const uint64_t* args, api::Role role, int nranks,
                     int rank) {
  const std::optional<uint32_t> dtype = ElementTypeOf(info, args, role);
  uint64_t bytes;
  if (!dtype || __builtin_mul_overflow(BufferElements(info, args, role, nranks, rank),
                                       SizeOfType(*dtype), &bytes))
    return 0;
  return bytes;
}

BufferUse InputBuffer(const api::ApiInfo& info, const uint64_t* args, int nranks, int rank) {
  for (uint32_t i = 0; i < info.param_count; ++i) {
    api::Role role = info.params[i].role;
    if (role == api::Role::kInRootOut && !IsRoot(info, args, rank)) continue;
    if (IsInputRole(role)) return Describe(info, args, static_cast<int>(i), nranks, rank);
  }
  return {};
}

BufferUse OutputBuffer(const api::ApiInfo& info, const uint64_t* args, int nranks, int rank) {
  for (uint32_t i = 0; i < info.param_count; ++i)
    if (IsOutputRole(info.params[i].role))
      return Describe(info, args, static_cast<int>(i), nranks, rank);
  return {};
}

}  // namespace deja::preload

// The macros that turn the rows of a .def file into whatever one needs.
//
// A row is
//   DEJA_FN(id, result type, name, since, class, (Role, type, name), (Role, type, name), …)
// without the leading k of the Role and the ApiClass. One defines DEJA_FN, includes the file, and
// undefines DEJA_FN again (the .def files leave it alone, so that a user may include several):
//
//   #define DEJA_FN(id, result, name, since, klass, ...) result name DEJA_PARAMS(__VA_ARGS__);
//   #include "api/tables/nccl.def"
//   #undef DEJA_FN
//
// DEJA_FORWARD(name, since, because) rows, in a *_forwarded.def of their own, name the functions
// that are left alone and say why.
#ifndef DEJA_API_TABLE_H_
#define DEJA_API_TABLE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "api/roles.h"

// DEJA_FOR_EACH(m, a, b, …): m(a) m(b) … DEJA_FOR_EACH_COMMA: m(a), m(b), …
#define DEJA_PARENS ()
#define DEJA_EVAL(...) DEJA_EVAL3(DEJA_EVAL3(DEJA_EVAL3(__VA_ARGS__)))
#define DEJA_EVAL3(...) DEJA_EVAL2(DEJA_EVAL2(DEJA_EVAL2(__VA_ARGS__)))
#define DEJA_EVAL2(...) DEJA_EVAL1(DEJA_EVAL1(DEJA_EVAL1(__VA_ARGS__)))
#define DEJA_EVAL1(...) __VA_ARGS__
#define DEJA_FOR_EACH(m, ...) __VA_OPT__(DEJA_EVAL(DEJA_FOR_EACH_STEP(m, __VA_ARGS__)))
#define DEJA_FOR_EACH_STEP(m, a, ...) \
  m(a) __VA_OPT__(DEJA_FOR_EACH_AGAIN DEJA_PARENS(m, __VA_ARGS__))
#define DEJA_FOR_EACH_AGAIN() DEJA_FOR_EACH_STEP
#define DEJA_FOR_EACH_COMMA(m, ...) __VA_OPT__(DEJA_EVAL(DEJA_COMMA_STEP(m, __VA_ARGS__)))
#define DEJA_COMMA_STEP(m, a, ...) m(a) __VA_OPT__(, DEJA_COMMA_AGAIN DEJA_PARENS(m, __VA_ARGS__))
#define DEJA_COMMA_AGAIN() DEJA_COMMA_STEP

#define DEJA_PARAM_DECL_(role, type, name) type name
#define DEJA_PARAM_NAME_(role, type, name) name
#define DEJA_PARAM_TYPE_(role, type, name) type
#define DEJA_PARAM_INFO_(role, type, name)   \
  ::deja::api::ParamInfo {                   \
    ::deja::api::Role::k##role, #name, #type \
  }
#define DEJA_PARAM_DECL(p) DEJA_PARAM_DECL_ p
#define DEJA_PARAM_NAME(p) DEJA_PARAM_NAME_ p
#define DEJA_PARAM_TYPE(p) DEJA_PARAM_TYPE_ p
#define DEJA_PARAM_INFO(p) DEJA_PARAM_INFO_ p

// (type name, type name, …)
#define DEJA_PARAMS(...) (DEJA_FOR_EACH_COMMA(DEJA_PARAM_DECL, __VA_ARGS__))
// (name, name, …)
#define DEJA_ARGS(...) (DEJA_FOR_EACH_COMMA(DEJA_PARAM_NAME, __VA_ARGS__))
// (type, type, …)
#define DEJA_TYPES(...) (DEJA_FOR_EACH_COMMA(DEJA_PARAM_TYPE, __VA_ARGS__))

// The definition of a row's parameters; the last element only keeps the array from being empty.
#define DEJA_TABLE_PARAMS(name, ...)          \
  constexpr ::deja::api::ParamInfo name[] = { \
      DEJA_FOR_EACH(DEJA_PARAM_INFO_COMMA, __VA_ARGS__)::deja::api::ParamInfo{}};
#define DEJA_PARAM_INFO_COMMA(p) DEJA_PARAM_INFO_ p,

namespace deja::api {

// How many parameters an array of DEJA_TABLE_PARAMS holds.
template <size_t N>
consteval uint32_t ParamCount(const ParamInfo (&)[N]) {
  return static_cast<uint32_t>(N - 1);
}

// "ncclResult_t", "int", …: a number; "void": nothing; "const char*": a string.
consteval ReturnKind ReturnKindOf(std::string_view type) {
  if (type == "void") return ReturnKind::kVoid;
  if (type == "const char*") return ReturnKind::kString;
  return ReturnKind::kResult;
}

// FNV-1a.
consteval uint64_t HashOfName(const char* name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3u;
  return hash;
}

// Ids count up from the family's first without a hole, no row is too long.
consteval bool IdsAreDense(std::span<const ApiInfo> table, uint32_t family) {
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i].id != family + i || table[i].param_count > kMaxArgs) return false;
  return true;
}

// And no name occurs twice: by hashes, since compilers bound how long they evaluate (clang: a
// million steps), and this compares each with each.
consteval bool TableIsSound(std::span<const ApiInfo> table, uint32_t family) {
  constexpr size_t kMostRows = 1024;
  if (table.size() > kMostRows) return false;
  uint64_t hashes[kMostRows] = {};
  for (size_t i = 0; i < table.size(); ++i) {
    const uint64_t hash = HashOfName(table[i].name);
    for (const uint64_t* other = hashes; other != hashes + i; ++other)
      if (*other == hash) return false;
    hashes[i] = hash;
  }
  return IdsAreDense(table, family);
}

// How an argument becomes a word of Call::args and back. Signed numbers are sign-extended; those
// with a fraction go as the bits of a double; what is passed by value and is no number goes as its
// address.
template <typename T>
uint64_t ToWord(const T& value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<uint64_t>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<uint64_t>(static_cast<double>(value));
  } else if constexpr (std::is_class_v<T>) {
    return reinterpret_cast<uint64_t>(&value);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  } else {
    return static_cast<uint64_t>(value);
  }
}

// The inverse of ToWord: the value of an argument or result of type T in a word.
template <typename T>
T FromWord(uint64_t word) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(word);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(std::bit_cast<double>(word));
  } else if constexpr (std::is_class_v<T>) {
    return *reinterpret_cast<const T*>(word);
  } else {
    return static_cast<T>(word);
  }
}

}  // namespace deja::api

#endif  // DEJA_API_TABLE_H_

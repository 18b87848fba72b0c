#include "cli/export/pickle.h"

#include <utility>

namespace deja::cli {

Pickle::Pickle() {
  bytes_ = "\x80\x02";  // PROTO 2
}

void Pickle::Text(std::string_view text) {
  bytes_ += 'X';  // BINUNICODE
  for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(text.size() >> shift);
  bytes_ += text;
}

void Pickle::Number(int64_t number) {
  const bool is_small = number >= INT32_MIN && number <= INT32_MAX;
  if (is_small)
    bytes_ += 'J';  // BININT
  else
    bytes_ += "\x8a\x08";  // LONG1 of eight bytes
  for (int shift = 0; shift < (is_small ? 32 : 64); shift += 8)
    bytes_ += static_cast<char>(static_cast<uint64_t>(number) >> shift);
}

void Pickle::Bool(bool value) {
  bytes_ += value ? '\x88' : '\x89';
}

void Pickle::None() {
  bytes_ += 'N';
}

void Pickle::BeginList() {
  bytes_ += "](";  // EMPTY_LIST MARK
}

void Pickle::EndList() {
  bytes_ += 'e';  // APPENDS
}

void Pickle::BeginDict() {
  bytes_ += "}(";  // EMPTY_DICT MARK
}

void Pickle::EndDict() {
  bytes_ += 'u';  // SETITEMS
}

void Pickle::BeginTuple() {
  bytes_ += '(';  // MARK
}

void Pickle::EndTuple() {
  bytes_ += 't';  // TUPLE
}

void Pickle::Global(std::string_view module, std::string_view name) {
  bytes_ += 'c';  // GLOBAL
  for (const std::string_view part : {module, name}) {
    bytes_ += part;
    bytes_ += '\n';
  }
}

void Pickle::Call() {
  bytes_ += 'R';  // REDUCE
}

void Pickle::PersistentId() {
  bytes_ += 'Q';  // BINPERSID
}

std::string Pickle::Take() {
  return std::exchange(bytes_, {});
}

void Pickle::Stop() {
  bytes_ += '.';
}

}  // namespace deja::cli

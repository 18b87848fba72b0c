// Any message of format/wire/messages.h, field by field, under the names of trace.proto: for kinds
// of events that event_text.cc and event_json.cc have no words for. Any thread.
#ifndef DEJA_CLI_EVENTS_EVENT_FIELDS_H_
#define DEJA_CLI_EVENTS_EVENT_FIELDS_H_

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "cli/events/event_words.h"
#include "common/ids.h"
#include "format/wire/messages.h"

namespace deja::cli {
namespace internal {

struct FieldWriter {
  nlohmann::json& json;

  template <typename T>
  void operator()(uint32_t, const T& field, const char* name) const {
    json[name] = ValueOf(field);
  }

  template <typename T>
  static nlohmann::json ValueOf(const T& field) {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string_view>) {
      return field;
    } else if constexpr (std::is_same_v<T, Hash128>) {
      return HashText(field);
    } else if constexpr (requires { typename T::value_type; }) {
      nlohmann::json list = nlohmann::json::array();
      for (const auto& element : field) list.push_back(ValueOf(element));
      return list;
    } else {
      nlohmann::json message = nlohmann::json::object();
      Visit(FieldWriter{message}, field);
      return message;
    }
  }
};

struct FieldDescriber {
  std::string& text;

  template <typename T>
  void operator()(uint32_t, const T& field, const char* name) const {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string_view>)
      text += fmt::format(" {}={}", name, field);
    else if constexpr (std::is_same_v<T, Hash128>)
      text += fmt::format(" {}={}", name, HashText(field));
  }
};

}  // namespace internal

// Adds every field of `message` to `json`, embedded messages and lists too.
template <typename Message>
void FieldsToJson(const Message& message, nlohmann::json& json) {
  Visit(internal::FieldWriter{json}, message);
}

// " count=7 name=w": numbers, texts and hashes; a line has no room for lists and embedded messages.
template <typename Message>
std::string FieldsText(const Message& message) {
  std::string text;
  Visit(internal::FieldDescriber{text}, message);
  return text;
}

}  // namespace deja::cli

#endif  // DEJA_CLI_EVENTS_EVENT_FIELDS_H_

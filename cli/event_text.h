// How events are shown: as a line of text, or as JSON.
//
// Pure functions; views of the event must be alive.
#ifndef DEJA_CLI_EVENT_TEXT_H_
#define DEJA_CLI_EVENT_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "cli/rank_story.h"
#include "format/messages.h"

namespace deja::cli {

// The name under which `deja show --kind` knows an event: "enter", "leave", "results", "input", …
const char* KindName(const format::Event& event);
// All of them, for the help.
std::string KindNames();

// "float32[25632] 6f3a…21 nan 3 min -0.2 max 0.4"
std::string DescribeTensor(const format::Tensor& tensor);
nlohmann::json TensorToJson(const format::Tensor& tensor);
std::string HashText(const Hash128& hash);

// Everything after time and thread: "enter AllReduce #412 comm 0 count=25632 datatype=float32
// op=sum".
std::string DescribeEvent(const format::Event& event, const RankStory& story);
nlohmann::json EventToJson(const format::Event& event, const RankStory& story);

// The arguments of a call that mean the same in every run: " count=25632 datatype=float32 op=sum".
std::string TellingArguments(const format::CallEnter& enter);

// The stack that an event refers to, or 0.
uint32_t StackOf(const format::Event& event);

}  // namespace deja::cli

#endif  // DEJA_CLI_EVENT_TEXT_H_

// How events are shown as a line of text.
//
// Pure functions; views of the event must be alive.
#ifndef DEJA_CLI_EVENTS_EVENT_TEXT_H_
#define DEJA_CLI_EVENTS_EVENT_TEXT_H_

#include <string>

#include "cli/events/rank_summary.h"
#include "format/wire/messages.h"

namespace deja::cli {

// "float32[25632] 6f3a…21 nan 3 min -0.2 max 0.4"
std::string DescribeTensor(const format::Tensor& tensor);

// Everything after time and thread: "enter AllReduce #412 comm 0 count=25632 datatype=float32
// op=sum".
std::string DescribeEvent(const format::Event& event, const RankSummary& summary);

// The arguments of a call that mean the same in every run: " count=25632 datatype=float32 op=sum".
std::string TellingArguments(const format::CallEnter& enter);

// The stack that an event refers to, or 0.
uint32_t StackOf(const format::Event& event);

}  // namespace deja::cli

#endif  // DEJA_CLI_EVENTS_EVENT_TEXT_H_

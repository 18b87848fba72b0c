// The topics of `deja help`: short texts about what several commands have in common.
//
// Constant data; any thread.
#ifndef DEJA_CLI_HELP_HELP_TOPICS_H_
#define DEJA_CLI_HELP_HELP_TOPICS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace deja::cli {

// A paragraph, or a row of a list if it has a name.
struct HelpItem {
  const char* name;  // empty: a paragraph
  const char* text;
};

struct HelpTopic {
  const char* name;
  const char* summary;  // one line
  std::span<const HelpItem> items;
};

// In the order of the help.
std::span<const HelpTopic> HelpTopics();

// Null: there is none of that name.
const HelpTopic* FindHelpTopic(std::string_view name);

// Wrapped at kHelpColumns, with a heading.
std::string TopicText(const HelpTopic& topic);

// What the exit status means, in one sentence.
extern const char* const kExitStatusLine;

}  // namespace deja::cli

#endif  // DEJA_CLI_HELP_HELP_TOPICS_H_

// What a recorded process became by exec, as events have it: a path, and arguments in one text.
//
// Pure functions. The texts are the trace's own: what shows them makes them plain.
#ifndef DEJA_CLI_PROGRAMS_EXECUTED_PROGRAM_H_
#define DEJA_CLI_PROGRAMS_EXECUTED_PROGRAM_H_

#include <string>
#include <string_view>
#include <vector>

namespace deja::cli {

// The single arguments. One that the recording has cut ends with "…".
std::vector<std::string> ArgumentsOf(std::string_view arguments);

// The words of a command in one line, those with spaces or quotes between quotes.
std::string QuotedWords(const std::vector<std::string>& words);

// "/bin/cat (cat notes)"; empty: the program is not known.
std::string ExecutedText(std::string_view program, std::string_view arguments);

}  // namespace deja::cli

#endif  // DEJA_CLI_PROGRAMS_EXECUTED_PROGRAM_H_

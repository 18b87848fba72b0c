// Which files are inputs of a program: its data, not the system and not its own code.
//
// One rule for recording, explained by `deja record --help` and docs/CLI.md. A path is absolute,
// without . and .. . In this order: what --inputs-exclude matches is none; what --inputs-include
// matches is one; what the built-in list names is none (the system's and the packages' folders,
// shared libraries, Python's modules); everything else is one.
//
// Patterns: * stands for anything, / included, ? for one character. Pure functions over the
// caller's bytes; any thread, no allocation. An InputRule borrows its texts.
#ifndef DEJA_COMMON_INPUT_RULE_H_
#define DEJA_COMMON_INPUT_RULE_H_

#include <span>
#include <string_view>

namespace deja {

class InputRule {
 public:
  InputRule() = default;
  // Patterns, each ended by a newline (the last one need not be).
  InputRule(std::string_view include, std::string_view exclude)
      : include_(include), exclude_(exclude) {}

  // True if the file at `path` is an input of the program. A relative path is none.
  [[nodiscard]] bool IsInput(std::string_view path) const;

  // The built-in list, for documents and tests.
  static std::span<const std::string_view> BuiltIn();

 private:
  std::string_view include_;
  std::string_view exclude_;
};

// Whether all of `text` is what `pattern` says. Upper and lower case differ.
bool MatchesPathPattern(std::string_view text, std::string_view pattern);

}  // namespace deja

#endif  // DEJA_COMMON_INPUT_RULE_H_

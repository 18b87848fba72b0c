// Text from a trace, as a terminal may show it: what a terminal, or a reader's eye, would take for
// something else is written out. Any thread.
#ifndef DEJA_COMMON_TEXT_PLAIN_TEXT_H_
#define DEJA_COMMON_TEXT_PLAIN_TEXT_H_

#include <string>
#include <string_view>

namespace deja {

// Control characters and bytes that are no UTF-8 become \n, \t, \xNN or \u{NNNN}. Control
// characters are those of C0, C1 and Unicode: line ends, escapes, marks of direction. A backslash
// stays what it is.
std::string PlainText(std::string_view text);

// Whether there is nothing to write out.
bool IsPlainText(std::string_view text);

// The same for a JSON document, whose control characters below 32 are escaped already. The others
// become \uNNNN in it, and it stays the same document.
std::string PlainJson(std::string_view json);

}  // namespace deja

#endif  // DEJA_COMMON_TEXT_PLAIN_TEXT_H_

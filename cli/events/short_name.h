// What a reader of a stack wants to see of the demangled name of a C++ function.
//
// Any thread.
#ifndef DEJA_CLI_EVENTS_SHORT_NAME_H_
#define DEJA_CLI_EVENTS_SHORT_NAME_H_

#include <string>
#include <string_view>

namespace deja::cli {

// "void c10::Box<std::tuple<int, …and so on>>::call" -> "c10::Box<…>::call": without the type that
// a template returns, and without arguments of templates that are longer than a word or two. A name
// that is no such thing is returned as it is.
std::string ShortName(std::string_view name);

}  // namespace deja::cli

#endif  // DEJA_CLI_EVENTS_SHORT_NAME_H_

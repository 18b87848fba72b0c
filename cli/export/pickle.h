// Pickle: values as Python's pickle module reads them (protocol 2): numbers, texts, lists, tuples,
// dictionaries.
//
// One thread.
#ifndef DEJA_CLI_EXPORT_PICKLE_H_
#define DEJA_CLI_EXPORT_PICKLE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace deja::cli {

// Begin and End enclose items. Those of a dictionary are a key and a value in turn.
class Pickle {
 public:
  Pickle();
  void Text(std::string_view text);  // UTF-8
  void Number(int64_t number);
  void Bool(bool value);
  void None();
  void BeginList();
  void EndList();
  void BeginDict();
  void EndDict();
  void BeginTuple();
  void EndTuple();
  void Global(std::string_view module, std::string_view name);  // a class or function
  void Call();          // the last value but one with the last one, a tuple, as its arguments
  void PersistentId();  // makes of the last value what the reader keeps under it
  // What was written since the last Take().
  std::string Take();
  // The end of the value; nothing may follow.
  void Stop();

 private:
  std::string bytes_;
};

}  // namespace deja::cli

#endif  // DEJA_CLI_EXPORT_PICKLE_H_

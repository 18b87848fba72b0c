// MaskedProgram: a program's path and arguments as a recording keeps them, without secrets.
//
// Any thread; no allocation. A value.
#ifndef DEJA_RECORDER_CORE_MASKED_PROGRAM_H_
#define DEJA_RECORDER_CORE_MASKED_PROGRAM_H_

#include <string_view>

#include "preload/process/next_program.h"
#include "recorder/core/config.h"

namespace deja::recorder {

class MaskedProgram {
 public:
  MaskedProgram(const preload::NextProgram& program, const Config& config);

  [[nodiscard]] std::string_view program() const { return {path_, path_size_}; }
  [[nodiscard]] std::string_view arguments() const { return {arguments_, arguments_size_}; }

 private:
  char path_[preload::NextProgram::kMostPath];
  char arguments_[preload::NextProgram::kMostArguments];
  size_t path_size_ = 0;
  size_t arguments_size_ = 0;
};

}  // namespace deja::recorder

#endif  // DEJA_RECORDER_CORE_MASKED_PROGRAM_H_

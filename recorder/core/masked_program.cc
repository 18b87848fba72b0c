#include "recorder/core/masked_program.h"

#include <algorithm>
#include <span>

#include "common/secrets/secrets.h"

namespace deja::recorder {

MaskedProgram::MaskedProgram(const preload::NextProgram& program, const Config& config)
    : path_size_(program.path().size()), arguments_size_(program.arguments().size()) {
  std::copy(program.path().begin(), program.path().end(), path_);
  std::copy(program.arguments().begin(), program.arguments().end(), arguments_);
  const SecretRule rule(config.keep_env, config.mask);
  (void)rule.MaskText(std::span(path_, path_size_));
  std::string_view previous;
  for (size_t at = 0; at < arguments_size_;) {
    const std::string_view argument =
        program.arguments().substr(at, program.arguments().find('\0', at) - at);
    (void)rule.MaskArgument(previous, std::span(arguments_ + at, argument.size()));
    previous = argument;
    at += argument.size() + 1;
  }
}

}  // namespace deja::recorder

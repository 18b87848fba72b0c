// Why an image of the process cannot be made. Empty: one can.
//
// Fixed memory, since a thread that has been stopped may hold the lock of an allocator.
#ifndef DEJA_REPLAYER_FORKS_REASON_H_
#define DEJA_REPLAYER_FORKS_REASON_H_

#include <cstdarg>
#include <cstdio>

namespace deja::replayer {

class Reason {
 public:
  Reason() = default;
  __attribute__((format(printf, 1, 2))) static Reason Of(const char* format, ...) {
    Reason reason;
    va_list words;
    va_start(words, format);
    vsnprintf(reason.text_, sizeof reason.text_, format, words);
    va_end(words);
    return reason;
  }

  [[nodiscard]] bool empty() const { return text_[0] == '\0'; }
  [[nodiscard]] const char* text() const { return text_; }

 private:
  char text_[160] = {};
};

}  // namespace deja::replayer

#endif  // DEJA_REPLAYER_FORKS_REASON_H_

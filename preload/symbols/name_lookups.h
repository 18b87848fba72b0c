// Whether the look-up of a name that this thread makes for real must ask no server: numbers are
// still understood. Set by an engine around InputCall::Real. Thread-local.
#ifndef DEJA_PRELOAD_SYMBOLS_NAME_LOOKUPS_H_
#define DEJA_PRELOAD_SYMBOLS_NAME_LOOKUPS_H_

namespace deja::preload {

extern constinit thread_local bool t_ask_nobody __attribute__((tls_model("initial-exec")));

// For the time of its life, look-ups of names of this thread ask no server.
class AskNobody {
 public:
  AskNobody() { t_ask_nobody = true; }
  ~AskNobody() { t_ask_nobody = false; }
  AskNobody(const AskNobody&) = delete;
  AskNobody& operator=(const AskNobody&) = delete;
};

}  // namespace deja::preload

#endif  // DEJA_PRELOAD_SYMBOLS_NAME_LOOKUPS_H_

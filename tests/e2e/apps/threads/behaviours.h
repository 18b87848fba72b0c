// Programs with several threads and no data race, each of whose output depends on which thread
// takes a lock first.
#ifndef DEJA_TESTS_E2E_APPS_THREADS_BEHAVIOURS_H_
#define DEJA_TESTS_E2E_APPS_THREADS_BEHAVIOURS_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace threads {

struct Behaviour {
  const char* name;
  void (*run)();
};
std::vector<Behaviour> QueueBehaviours();
std::vector<Behaviour> ConditionBehaviours();
std::vector<Behaviour> LockBehaviours();
std::vector<Behaviour> OnceBehaviours();
std::vector<Behaviour> C11Behaviours();
std::vector<Behaviour> EndBehaviours();

// What happened, in order. Callers hold the lock that says what comes first.
class Log {
 public:
  void Add(int thread, int64_t what = 0);
  // The beginning as it is, and of all of it a hash.
  void Print(const char* title) const;

 private:
  std::string text_;
  uint64_t hash_ = 0xcbf29ce484222325u;
  int runs_ = 0;
  int thread_ = -1;
  int64_t count_ = 0;
};

// Computes for a while, and gives the processor away now and then.
void Work(int amount);
void Nap(int microseconds);

// Runs `body(i)` on `count` threads, none of which begins before all are there.
void RunThreads(int count, const std::function<void(int)>& body);

}  // namespace threads

#endif  // DEJA_TESTS_E2E_APPS_THREADS_BEHAVIOURS_H_

// A mutex with these attributes, for tests of shared and of robust ones.
#ifndef DEJA_TESTS_UNIT_PRELOAD_MEET_MADE_MUTEX_H_
#define DEJA_TESTS_UNIT_PRELOAD_MEET_MADE_MUTEX_H_

#include <gtest/gtest.h>
#include <pthread.h>

namespace deja::preload {

inline pthread_mutex_t Made(bool shared, bool robust, int type = PTHREAD_MUTEX_NORMAL) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type);
  if (shared) pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  if (robust) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_t mutex;
  EXPECT_EQ(pthread_mutex_init(&mutex, &attributes), 0);
  pthread_mutexattr_destroy(&attributes);
  return mutex;
}

}  // namespace deja::preload

#endif  // DEJA_TESTS_UNIT_PRELOAD_MEET_MADE_MUTEX_H_

// DEJA_NEXT_ENVIRONMENT(env, next): the environment to pass instead of `env`, on the stack of the
// calling function (a macro, since that is where alloca puts it).
#ifndef DEJA_PRELOAD_HOOKS_PROCESS_CHILD_ENVIRONMENT_H_
#define DEJA_PRELOAD_HOOKS_PROCESS_CHILD_ENVIRONMENT_H_

#include "preload/process/process_name.h"

#define DEJA_NEXT_ENVIRONMENT(passed, env, next)                                                  \
  const ::deja::preload::EnvironmentSize passed##_size = ::deja::preload::SizeOfEnvironment(env); \
  char* const* passed = ::deja::preload::FillEnvironment(                                         \
      env, next,                                                                                  \
      {static_cast<char**>(__builtin_alloca(passed##_size.slots * sizeof(char*))),                \
       passed##_size.slots},                                                                      \
      {static_cast<char*>(__builtin_alloca(passed##_size.text)), passed##_size.text})

#endif  // DEJA_PRELOAD_HOOKS_PROCESS_CHILD_ENVIRONMENT_H_

/* What the programs of this folder share: a communicator of all ranks, from the launcher's
 * variables. */
#ifndef DEJA_TESTS_E2E_APPS_RECORD_JOB_H_
#define DEJA_TESTS_E2E_APPS_RECORD_JOB_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/compat/nccl.h"

static inline int job_variable(const char* first, const char* second, int fallback) {
  const char* text = getenv(first);
  if (text == NULL) text = getenv(second);
  return text != NULL ? atoi(text) : fallback;
}

static inline int job_rank(void) {
  return job_variable("RANK", "OMPI_COMM_WORLD_RANK", 0);
}
static inline int job_size(void) {
  return job_variable("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", 1);
}

#define JOB_CHECK(call)                                                                     \
  do {                                                                                      \
    ncclResult_t result_ = (call);                                                          \
    if (result_ != ncclSuccess) {                                                           \
      fprintf(stderr, "rank %d: %s: %s\n", job_rank(), #call, ncclGetErrorString(result_)); \
      exit(9);                                                                              \
    }                                                                                       \
  } while (0)

static inline ncclComm_t job_communicator(void) {
  ncclUniqueId id;
  ncclComm_t comm = NULL;
  JOB_CHECK(ncclGetUniqueId(&id));
  JOB_CHECK(ncclCommInitRank(&comm, job_size(), id, job_rank()));
  return comm;
}

/* The value of option `--name=…`, or NULL. */
static inline const char* job_option(int argc, char** argv, const char* name) {
  size_t length = strlen(name);
  for (int i = 1; i < argc; ++i)
    if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=') return argv[i] + length + 1;
  return NULL;
}

static inline int job_number(int argc, char** argv, const char* name, int fallback) {
  const char* text = job_option(argc, argv, name);
  return text != NULL ? atoi(text) : fallback;
}

#endif

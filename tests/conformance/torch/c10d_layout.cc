// Prints the structures that Python fills in, a line each: name, size, and offset of each field in
// order. Those of preload/hooks/python/, and that of an update in include/deja.h.
#include <cstddef>
#include <cstdio>

#include "include/deja.h"
#include "preload/hooks/python/c10d_api.h"
#include "preload/hooks/python/group_operations.h"

#define FIELD(type, field) std::printf(" " #field "=%zu", offsetof(type, field))

int main() {
  std::printf("Piece %zu", sizeof(deja::preload::Piece));
  FIELD(deja::preload::Piece, data);
  FIELD(deja::preload::Piece, bytes);
  std::printf("\nStoreCall %zu", sizeof(deja_store_call));
  FIELD(deja_store_call, size);
  FIELD(deja_store_call, failed);
  FIELD(deja_store_call, function);
  FIELD(deja_store_call, key);
  FIELD(deja_store_call, key_size);
  FIELD(deja_store_call, value);
  FIELD(deja_store_call, value_size);
  FIELD(deja_store_call, of_rank);
  FIELD(deja_store_call, unused);
  std::printf("\nOptimizerUpdate %zu", sizeof(deja_update_t));
  FIELD(deja_update_t, optimizer);
  FIELD(deja_update_t, dtype);
  FIELD(deja_update_t, count);
  FIELD(deja_update_t, parameters);
  FIELD(deja_update_t, first_moment);
  FIELD(deja_update_t, second_moment);
  FIELD(deja_update_t, gradient);
  FIELD(deja_update_t, updates);
  FIELD(deja_update_t, learning_rate);
  FIELD(deja_update_t, beta1);
  FIELD(deja_update_t, beta2);
  FIELD(deja_update_t, epsilon);
  FIELD(deja_update_t, weight_decay);
  FIELD(deja_update_t, gradient_scale);
  FIELD(deja_update_t, nesterov);
  std::printf("\n");
}

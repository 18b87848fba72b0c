// Prints the structures of preload/hooks/python/c10d_api.h and that of an update in include/deja.h,
// a line each: name, size, and offset of each field in order.
#include <cstddef>
#include <cstdio>

#include "include/deja.h"
#include "preload/hooks/python/c10d_api.h"

#define FIELD(type, field) std::printf(" " #field "=%zu", offsetof(type, field))

int main() {
  std::printf("Piece %zu", sizeof(deja_piece));
  FIELD(deja_piece, data);
  FIELD(deja_piece, bytes);
  std::printf("\nGroupCall %zu", sizeof(deja_group_call));
  FIELD(deja_group_call, size);
  FIELD(deja_group_call, dtype);
  FIELD(deja_group_call, function);
  FIELD(deja_group_call, group);
  FIELD(deja_group_call, inputs);
  FIELD(deja_group_call, input_count);
  FIELD(deja_group_call, outputs);
  FIELD(deja_group_call, output_count);
  FIELD(deja_group_call, op);
  FIELD(deja_group_call, peer);
  FIELD(deja_group_call, tag);
  FIELD(deja_group_call, nranks);
  FIELD(deja_group_call, name);
  FIELD(deja_group_call, identity);
  FIELD(deja_group_call, operation);
  FIELD(deja_group_call, state);
  FIELD(deja_group_call, src);
  FIELD(deja_group_call, error);
  FIELD(deja_group_call, error_size);
  FIELD(deja_group_call, python_stack);
  FIELD(deja_group_call, unused);
  std::printf("\nGroupDone %zu", sizeof(deja_group_done));
  FIELD(deja_group_done, size);
  FIELD(deja_group_done, dtype);
  FIELD(deja_group_done, group);
  FIELD(deja_group_done, operation);
  FIELD(deja_group_done, outputs);
  FIELD(deja_group_done, output_count);
  FIELD(deja_group_done, src);
  FIELD(deja_group_done, unused);
  FIELD(deja_group_done, error);
  FIELD(deja_group_done, error_size);
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

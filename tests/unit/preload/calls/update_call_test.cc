// deja_update_t is read where include/deja.h cannot be included: the two must agree.
#include "preload/calls/update_call.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "include/deja.h"

namespace deja::preload {
namespace {

static_assert(sizeof(UpdateCall) == sizeof(deja_update_t));
#define DEJA_SAME_PLACE(field) \
  static_assert(offsetof(UpdateCall, field) == offsetof(deja_update_t, field))
DEJA_SAME_PLACE(optimizer);
DEJA_SAME_PLACE(dtype);
DEJA_SAME_PLACE(count);
DEJA_SAME_PLACE(parameters);
DEJA_SAME_PLACE(first_moment);
DEJA_SAME_PLACE(second_moment);
DEJA_SAME_PLACE(gradient);
DEJA_SAME_PLACE(updates);
DEJA_SAME_PLACE(learning_rate);
DEJA_SAME_PLACE(beta1);
DEJA_SAME_PLACE(beta2);
DEJA_SAME_PLACE(epsilon);
DEJA_SAME_PLACE(weight_decay);
DEJA_SAME_PLACE(gradient_scale);
DEJA_SAME_PLACE(nesterov);
#undef DEJA_SAME_PLACE

TEST(UpdateCall, BecomesAnEvent) {
  const float memory[4] = {};
  UpdateCall call;
  call.optimizer = DEJA_ADAMW;
  call.dtype = DEJA_FLOAT32;
  call.count = 17;
  call.parameters = &memory[0];
  call.second_moment = &memory[2];
  call.gradient = &memory[3];
  call.updates = 5;
  call.learning_rate = 1e-3;
  call.beta1 = 0.9;
  call.beta2 = 0.999;
  call.epsilon = 1e-8;
  call.weight_decay = 0.01;
  call.gradient_scale = 0.5;
  call.nesterov = -1;
  const format::OptimizerUpdate update = DescribeUpdate(call);
  EXPECT_EQ(update.optimizer, 3u);
  EXPECT_EQ(update.dtype, 7u);
  EXPECT_EQ(update.count, 17u);
  EXPECT_EQ(update.parameters, reinterpret_cast<uint64_t>(&memory[0]));
  EXPECT_EQ(update.first_moment, 0u);
  EXPECT_EQ(update.second_moment, reinterpret_cast<uint64_t>(&memory[2]));
  EXPECT_EQ(update.gradient, reinterpret_cast<uint64_t>(&memory[3]));
  EXPECT_EQ(update.updates, 5u);
  EXPECT_EQ(update.learning_rate, 1e-3);
  EXPECT_EQ(update.beta1, 0.9);
  EXPECT_EQ(update.beta2, 0.999);
  EXPECT_EQ(update.epsilon, 1e-8);
  EXPECT_EQ(update.weight_decay, 0.01);
  EXPECT_EQ(update.gradient_scale, 0.5);
  EXPECT_EQ(update.nesterov, 1u);
}

}  // namespace
}  // namespace deja::preload

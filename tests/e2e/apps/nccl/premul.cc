// ncclRedOpCreatePreMulSum: every data type, a scalar of each rank's own, from the host at once and
// by pointer.
#include "app.h"

namespace {

constexpr size_t kCount = 4099;

// A scalar that keeps sums in range and is exact in none of the small formats.
uint64_t Scalar(uint64_t seed, int rank, ncclDataType_t type) {
  app::Numbers numbers(seed, static_cast<uint64_t>(rank), 77);
  if (app::IsInteger(type)) {
    uint64_t mask =
        app::SizeOf(type) == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * app::SizeOf(type)) - 1;
    return numbers.Next() & mask;
  }
  return app::Encode(type, 0.3 + numbers.Uniform());
}

uint64_t Check(ncclComm_t comm, uint64_t seed, ncclDataType_t type,
               ncclScalarResidence_t residence) {
  auto n = static_cast<size_t>(app::World());
  auto rank = static_cast<size_t>(app::Rank());
  app::Operator reference{ncclSum, true, {}};
  for (int r = 0; r < app::World(); ++r) reference.scalars.push_back(Scalar(seed, r, type));
  // The library may only look at as many bytes as the type has.
  std::vector<char> scalar(app::SizeOf(type));
  app::StoreBits(type, scalar.data(), 0, reference.scalars[rank]);
  ncclRedOp_t op;
  APP_OK(ncclRedOpCreatePreMulSum(&op, scalar.data(), type, residence, comm));
  APP_CHECK(op >= ncclNumOps);
  if (residence == ncclScalarHostImmediate) std::memset(scalar.data(), 0xee, scalar.size());

  auto inputs = app::Inputs(seed, app::World(), 1, type, kCount * n);
  const std::vector<char>& mine = inputs[rank];
  std::vector<char> out(kCount * app::SizeOf(type));
  APP_OK(ncclAllReduce(mine.data(), out.data(), kCount, type, op, comm, nullptr));
  APP_CHECK(out == app::ReferenceAllReduce(type, reference, inputs, kCount));
  uint64_t hash = app::Hash(out);
  APP_OK(ncclReduceScatter(mine.data(), out.data(), kCount, type, op, comm, nullptr));
  APP_CHECK(out ==
            app::ReferenceReduce(type, reference, inputs, rank * kCount, kCount, app::Rank()));
  APP_OK(ncclReduce(mine.data(), out.data(), kCount, type, op, 0, comm, nullptr));
  if (rank == 0) APP_CHECK(out == app::ReferenceReduce(type, reference, inputs, 0, kCount, 0));

  // The scalar is looked at when the call is made.
  if (residence == ncclScalarDevice && !app::IsInteger(type)) {
    for (size_t r = 0; r < n; ++r) reference.scalars[r] = app::Encode(type, 0.5);
    app::StoreBits(type, scalar.data(), 0, reference.scalars[rank]);
    APP_OK(ncclAllReduce(mine.data(), out.data(), kCount, type, op, comm, nullptr));
    APP_CHECK(out == app::ReferenceAllReduce(type, reference, inputs, kCount));
  }
  APP_OK(ncclRedOpDestroy(op, comm));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclRedOpDestroy(op, comm));
  return hash;
}

void Alone(uint64_t seed) {
  ncclUniqueId id;
  APP_OK(ncclGetUniqueId(&id));
  id.internal[100] = static_cast<char>(1 + app::Rank());
  ncclComm_t comm;
  APP_OK(ncclCommInitRank(&comm, 1, id, 0));
  float scalar = 1.5f;
  ncclRedOp_t op;
  APP_OK(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, comm));
  float in[2] = {2.0f, static_cast<float>(seed % 7)};
  float out[2];
  APP_OK(ncclAllReduce(in, out, 2, ncclFloat32, op, comm, nullptr));
  APP_CHECK(out[0] == 3.0f && out[1] == 1.5f * in[1]);
  APP_OK(ncclCommDestroy(comm));
}

}  // namespace

int main(int argc, char** argv) {
  app::Arguments arguments = app::Parse(argc, argv);
  ncclComm_t comm = app::InitWorld();
  app::AgreeOnSeed(&arguments, comm);
  for (ncclDataType_t type : app::kAllTypes) {
    uint64_t hash = Check(comm, arguments.seed, type, ncclScalarHostImmediate);
    APP_CHECK(hash == Check(comm, arguments.seed, type, ncclScalarDevice));
    app::Print(app::TypeName(type), hash);
  }
  // An operator is for one data type; operators of NCCL's own cannot be destroyed.
  float scalar = 2;
  float x = 1;
  ncclRedOp_t op;
  APP_OK(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, comm));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclAllReduce(&x, &x, 1, ncclInt32, op, comm, nullptr));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclRedOpDestroy(ncclSum, comm));
  APP_EXPECT_RESULT(ncclInvalidArgument, ncclRedOpDestroy(op, nullptr));
  APP_OK(ncclRedOpDestroy(op, comm));
  Alone(arguments.seed);
  APP_OK(ncclCommDestroy(comm));
  return app::Finish();
}

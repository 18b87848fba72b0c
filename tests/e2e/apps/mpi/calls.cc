// Most of what programs call in MPI, with data from entropy: only a run whose inputs are the same
// prints the same. One line a theme and rank; each theme checks what it can.
//
//   calls [THEME …]   all themes without arguments; some of them only when asked for
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/apps/mpi/calls_support.h"

namespace {

void TwoRanks() {
  const auto send = Random<int>(100);
  std::vector<int> receive(200);
  MPI_Status status;
  int count = 0;
  MPI_Sendrecv(send.data(), 100, MPI_INT, Next(), 5, receive.data(), 200, MPI_INT, Previous(), 5,
               MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  Require(count == 100 && status.MPI_SOURCE == Previous() && status.MPI_TAG == 5, "status");
  Say("sendrecv", HashOf(receive));
  if (g_rank % 2 == 0 && g_rank + 1 < g_size) {
    MPI_Send(send.data(), 100, MPI_INT, g_rank + 1, 6, MPI_COMM_WORLD);
    MPI_Ssend(send.data(), 0, MPI_INT, g_rank + 1, 7, MPI_COMM_WORLD);
  } else if (g_rank % 2 == 1) {
    MPI_Probe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    Require(count == 400, "probed");
    MPI_Recv(receive.data(), 200, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(nullptr, 0, MPI_INT, g_rank - 1, 7, MPI_COMM_WORLD, &status);
  }
  Say("recv", HashOf(receive));
  auto both = Random<double>(10);
  MPI_Sendrecv_replace(both.data(), 10, MPI_DOUBLE, Next(), 8, Previous(), 8, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE);
  Say("replace", HashOf(both));
  MPI_Recv(receive.data(), 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
  Require(status.MPI_SOURCE == MPI_PROC_NULL, "nobody");
}

// In the order in which messages happen to come.
void AnySource() {
  const auto own = Random<int>(4);
  if (g_rank != 0) {
    MPI_Send(own.data(), 1 + g_rank % 4, MPI_INT, 0, g_rank, MPI_COMM_WORLD);
    return;
  }
  uint64_t hash = 0;
  for (int i = 1; i < g_size; ++i) {
    int receive[4] = {};
    MPI_Status status;
    MPI_Recv(receive, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    int count = 0;
    MPI_Get_count(&status, MPI_INT, &count);
    Require(count == 1 + status.MPI_SOURCE % 4 && status.MPI_TAG == status.MPI_SOURCE,
            "any source");
    hash = HashOf(receive, sizeof receive, hash * 31 + static_cast<uint64_t>(status.MPI_SOURCE));
  }
  Say("any", hash);
}

void Requests() {
  const auto send = Random<long>(50);
  std::vector<std::vector<long>> receive(static_cast<size_t>(g_size), std::vector<long>(50));
  std::vector<MPI_Request> requests(static_cast<size_t>(2 * g_size), MPI_REQUEST_NULL);
  for (int i = 0; i < g_size; ++i) {
    MPI_Irecv(receive[static_cast<size_t>(i)].data(), 50, MPI_LONG, i, 9, MPI_COMM_WORLD,
              &requests[static_cast<size_t>(i)]);
    MPI_Isend(send.data(), 50, MPI_LONG, i, 9, MPI_COMM_WORLD,
              &requests[static_cast<size_t>(g_size + i)]);
  }
  std::vector<MPI_Status> statuses(requests.size());
  MPI_Waitall(2 * g_size, requests.data(), statuses.data());
  uint64_t hash = 0;
  for (int i = 0; i < g_size; ++i) {
    Require(statuses[static_cast<size_t>(i)].MPI_SOURCE == i, "source");
    Require(requests[static_cast<size_t>(i)] == MPI_REQUEST_NULL, "null");
    hash ^= HashOf(receive[static_cast<size_t>(i)]) * static_cast<uint64_t>(i + 1);
  }
  Say("waitall", hash);

  // One by one, asked for in turns; how often is part of the output.
  std::vector<int> got(static_cast<size_t>(g_size));
  for (int i = 0; i < g_size; ++i) {
    MPI_Irecv(&got[static_cast<size_t>(i)], 1, MPI_INT, i, 10, MPI_COMM_WORLD,
              &requests[static_cast<size_t>(i)]);
  }
  const auto mine = Random<int>(1);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < g_size; ++i)
    MPI_Send(mine.data(), 1, MPI_INT, (g_rank + i) % g_size, 10, MPI_COMM_WORLD);
  uint64_t asked = 0;
  uint64_t order = 0;
  for (int done = 0; done < g_size;) {
    int index = 0;
    int flag = 0;
    ++asked;
    MPI_Testany(g_size, requests.data(), &index, &flag, MPI_STATUS_IGNORE);
    if (flag == 0) continue;
    order = order * 31 + static_cast<uint64_t>(index);
    ++done;
  }
  Say("order", order);
  Say("asked", asked);
  Say("testany", HashOf(got));

  MPI_Request one;
  int flag = 0;
  asked = 0;
  MPI_Irecv(got.data(), 1, MPI_INT, Previous(), 11, MPI_COMM_WORLD, &one);
  MPI_Send(mine.data(), 1, MPI_INT, Next(), 11, MPI_COMM_WORLD);
  MPI_Status status;
  while (flag == 0) {
    MPI_Request_get_status(one, &flag, &status);
    ++asked;
  }
  const int early = got[0];
  got[0] = -1;
  MPI_Wait(&one, &status);
  Require(got[0] == -1, "delivered twice");
  Say("status", static_cast<uint64_t>(early) + asked * 1000003);
  flag = 0;
  MPI_Send(mine.data(), 1, MPI_INT, Next(), 12, MPI_COMM_WORLD);
  for (asked = 0; flag == 0; ++asked) MPI_Iprobe(Previous(), 12, MPI_COMM_WORLD, &flag, &status);
  MPI_Message message;
  MPI_Mprobe(Previous(), 12, MPI_COMM_WORLD, &message, &status);
  MPI_Mrecv(got.data(), 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  Say("mrecv", HashOf(got) + asked);
}

void Persistent() {
  std::vector<double> send(20);
  std::vector<double> receive(20);
  MPI_Request requests[2];
  MPI_Send_init(send.data(), 20, MPI_DOUBLE, Next(), 13, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(receive.data(), 20, MPI_DOUBLE, Previous(), 13, MPI_COMM_WORLD, &requests[1]);
  uint64_t hash = 0;
  for (int i = 0; i < 3; ++i) {
    const auto fresh = Random<double>(20);
    std::copy(fresh.begin(), fresh.end(), send.begin());
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    hash = hash * 31 + HashOf(receive);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  Say("persistent", hash);
}

void Collectives() {
  const auto n = static_cast<size_t>(g_size);
  auto own = Random<int>(8);
  std::vector<int> all(8 * n);
  MPI_Allgather(own.data(), 8, MPI_INT, all.data(), 8, MPI_INT, MPI_COMM_WORLD);
  Say("allgather", HashOf(all));
  std::vector<int> counts(n);
  std::vector<int> displs(n);
  for (int i = 0; i < g_size; ++i) {
    counts[static_cast<size_t>(i)] = i + 1;
    displs[static_cast<size_t>(i)] = 10 * i;
  }
  std::vector<int> apart(10 * n, -1);
  MPI_Allgatherv(own.data(), g_rank + 1, MPI_INT, apart.data(), counts.data(), displs.data(),
                 MPI_INT, MPI_COMM_WORLD);
  Say("allgatherv", HashOf(apart));
  std::fill(apart.begin(), apart.end(), -1);
  MPI_Gatherv(own.data(), g_rank + 1, MPI_INT, apart.data(), counts.data(), displs.data(), MPI_INT,
              1, MPI_COMM_WORLD);
  Say("gatherv", HashOf(apart));
  std::vector<int> part(10);
  apart = Random<int>(10 * n);
  MPI_Scatterv(apart.data(), counts.data(), displs.data(), MPI_INT, part.data(), 10, MPI_INT, 0,
               MPI_COMM_WORLD);
  Say("scatterv", HashOf(part));
  MPI_Scatter(apart.data(), 10, MPI_INT, part.data(), 10, MPI_INT, g_size - 1, MPI_COMM_WORLD);
  Say("scatter", HashOf(part));
  auto to_all = Random<short>(3 * n);
  std::vector<short> from_all(3 * n);
  MPI_Alltoall(to_all.data(), 3, MPI_SHORT, from_all.data(), 3, MPI_SHORT, MPI_COMM_WORLD);
  Say("alltoall", HashOf(from_all));
  std::vector<int> ones(n, 1);
  std::vector<int> twos(n);
  std::iota(twos.begin(), twos.end(), 0);
  for (int& x : twos) x *= 2;
  std::fill(from_all.begin(), from_all.end(), 0);
  MPI_Alltoallv(to_all.data(), ones.data(), twos.data(), MPI_SHORT, from_all.data(), ones.data(),
                twos.data(), MPI_SHORT, MPI_COMM_WORLD);
  Say("alltoallv", HashOf(from_all));
  std::vector<MPI_Datatype> types(n, MPI_SHORT);
  for (int& x : twos) x *= 2;  // bytes now
  MPI_Alltoallw(to_all.data(), ones.data(), twos.data(), types.data(), from_all.data(), ones.data(),
                twos.data(), types.data(), MPI_COMM_WORLD);
  Say("alltoallw", HashOf(from_all));
  auto sums = Random<double>(6);
  auto result = sums;
  MPI_Allreduce(MPI_IN_PLACE, result.data(), 6, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  Say("inplace", HashOf(result));
  MPI_Reduce(sums.data(), result.data(), 6, MPI_DOUBLE, MPI_MAX, g_size - 1, MPI_COMM_WORLD);
  Say("reduce", HashOf(result));
  MPI_Scan(sums.data(), result.data(), 6, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  Say("scan", HashOf(result));
  std::fill(result.begin(), result.end(), 0.);
  MPI_Exscan(sums.data(), result.data(), 6, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (g_rank != 0) Say("exscan", HashOf(result));
  auto pieces = Random<int>(n * (n + 1) / 2);
  std::vector<int> piece(n);
  MPI_Reduce_scatter(pieces.data(), piece.data(), counts.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  Say("reduce_scatter", HashOf(piece));
  MPI_Reduce_scatter_block(pieces.data(), piece.data(), 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  Say("reduce_scatter_block", HashOf(piece));
  struct {
    double value;
    int at;
  } best = {sums[0], g_rank}, most = {};
  MPI_Allreduce(&best, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  Say("maxloc", HashOf(&most.value, sizeof most.value) + static_cast<uint64_t>(most.at));
}

void NotWaiting() {
  auto own = Random<float>(32);
  std::vector<float> sum(32);
  MPI_Request requests[3];
  MPI_Iallreduce(own.data(), sum.data(), 32, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  auto word = Random<uint64_t>(1);
  MPI_Ibcast(word.data(), 1, MPI_UINT64_T, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]);
  int flag = 0;
  uint64_t asked = 0;
  for (; flag == 0; ++asked) MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
  Say("iallreduce", HashOf(sum));
  Say("ibcast", word[0]);
  Say("asked", asked);
  std::vector<int> all(static_cast<size_t>(g_size));
  MPI_Iallgather(&g_rank, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  Require(all[static_cast<size_t>(g_size - 1)] == g_size - 1, "iallgather");
}

void Types() {
  // A column of a matrix, a structure with a hole, indexed blocks.
  constexpr int kRows = 6;
  constexpr int kColumns = 5;
  auto matrix = Random<int>(kRows * kColumns);
  auto other = Random<int>(kRows * kColumns);
  MPI_Datatype column;
  MPI_Type_vector(kRows, 1, kColumns, MPI_INT, &column);
  MPI_Type_commit(&column);
  MPI_Sendrecv(&matrix[1], 1, column, Next(), 20, &other[2], 1, column, Previous(), 20,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  Say("column", HashOf(other));
  struct Mixed {
    char letter;
    double number;
    int pair[2];
  };
  Mixed send[3] = {};
  Mixed receive[3] = {};
  std::memset(static_cast<void*>(receive), 0x5a, sizeof receive);
  for (Mixed& m : send)
    m = {static_cast<char>(Random<int>(1)[0]), Random<double>(1)[0], {Random<int>(1)[0], g_rank}};
  int lengths[] = {1, 1, 2};
  MPI_Aint places[3];
  MPI_Get_address(&send[0].letter, &places[0]);
  MPI_Get_address(&send[0].number, &places[1]);
  MPI_Get_address(send[0].pair, &places[2]);
  for (int i = 2; i >= 0; --i) places[i] -= places[0];
  MPI_Datatype parts[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
  MPI_Datatype packed;
  MPI_Datatype mixed;
  MPI_Type_create_struct(3, lengths, places, parts, &packed);
  MPI_Type_create_resized(packed, 0, sizeof(Mixed), &mixed);
  MPI_Type_commit(&mixed);
  MPI_Sendrecv(send, 3, mixed, Next(), 21, receive, 3, mixed, Previous(), 21, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  Say("struct", HashOf(receive, sizeof receive));
  int blocks[] = {2, 1, 3};
  int where[] = {0, 4, 9};
  MPI_Datatype indexed;
  MPI_Type_indexed(3, blocks, where, MPI_INT, &indexed);
  MPI_Type_commit(&indexed);
  std::vector<int> gathered(static_cast<size_t>(g_size) * 6);
  MPI_Allgather(matrix.data(), 1, indexed, gathered.data(), 6, MPI_INT, MPI_COMM_WORLD);
  Say("indexed", HashOf(gathered));
  MPI_Request request;
  std::fill(other.begin(), other.end(), 0);
  MPI_Irecv(other.data(), 2, indexed, Previous(), 22, MPI_COMM_WORLD, &request);
  MPI_Send(matrix.data(), 9, MPI_INT, Next(), 22, MPI_COMM_WORLD);  // less than there is room for
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  Say("less", HashOf(other));
  int size = 0;
  MPI_Type_size(mixed, &size);
  Require(size == 17, "size");
  char buffer[256];
  int position = 0;
  MPI_Pack(matrix.data(), 1, indexed, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
  MPI_Pack(&g_rank, 1, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
  Require(position == 28, "packed");
  Say("pack", HashOf(buffer, static_cast<size_t>(position)));
  int back[7] = {};
  position = 0;
  MPI_Unpack(buffer, 28, &position, back, 7, MPI_INT, MPI_COMM_WORLD);
  Require(back[6] == g_rank && back[0] == matrix[0], "unpacked");
  for (MPI_Datatype* type : {&column, &packed, &mixed, &indexed}) {
    MPI_Type_free(type);
    Require(*type == MPI_DATATYPE_NULL, "freed");
  }
}

void Multiply(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i)
    static_cast<double*>(inout)[i] =
        static_cast<double*>(in)[i] + static_cast<double*>(inout)[i] / 2;
}

void Communicators() {
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, g_rank % 2 == 1 ? MPI_UNDEFINED : 0, -g_rank, &half);
  Require((half == MPI_COMM_NULL) == (g_rank % 2 == 1), "undefined");
  if (half != MPI_COMM_NULL) {
    int rank = 0;
    MPI_Comm_rank(half, &rank);
    int sum = 0;
    const int own = Random<int>(1)[0];
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, half);
    Say("half", static_cast<uint64_t>(sum) + static_cast<uint64_t>(rank));
    MPI_Comm_free(&half);
  }
  MPI_Comm shared;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
  int local = 0;
  MPI_Comm_size(shared, &local);
  Say("local", static_cast<uint64_t>(local));
  MPI_Comm copy;
  MPI_Comm_dup(shared, &copy);
  int relation = -1;
  MPI_Comm_compare(copy, shared, &relation);
  Require(relation == MPI_CONGRUENT, "congruent");
  MPI_Comm_set_name(copy, "a copy");
  char name[MPI_MAX_OBJECT_NAME] = {};
  int length = 0;
  MPI_Comm_get_name(copy, name, &length);
  Require(std::strcmp(name, "a copy") == 0 && length == 6, "name");
  MPI_Group world;
  MPI_Group again;
  MPI_Group few;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Comm_group(MPI_COMM_WORLD, &again);
  const int ranks[] = {g_size - 1, 0};
  MPI_Group_incl(world, 2, ranks, &few);
  int translated[2] = {};
  const int zero_one[] = {0, 1};
  MPI_Group_translate_ranks(few, 2, zero_one, world, translated);
  Require(translated[0] == g_size - 1 && translated[1] == 0, "translated");
  MPI_Comm ends;
  MPI_Comm_create(MPI_COMM_WORLD, few, &ends);
  if (ends != MPI_COMM_NULL) {
    auto number = Random<double>(1);
    MPI_Bcast(number.data(), 1, MPI_DOUBLE, 0, ends);
    Say("ends", HashOf(number));
    MPI_Comm_free(&ends);
  }
  MPI_Group_free(&few);
  MPI_Group_free(&again);
  MPI_Group_free(&world);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&shared);
  int dims[2] = {};
  const int periods[] = {1, 0};
  MPI_Dims_create(g_size, 2, dims);
  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
  int coords[2] = {};
  MPI_Cart_coords(grid, g_rank, 2, coords);
  int up = 0;
  int down = 0;
  MPI_Cart_shift(grid, 0, 1, &up, &down);
  Say("grid", static_cast<uint64_t>(dims[0] * 1000 + coords[0] * 100 + coords[1] * 10 + up + down));
  MPI_Comm_free(&grid);
  MPI_Op op;
  MPI_Op_create(Multiply, 0, &op);
  auto own = Random<double>(4);
  std::vector<double> result(4);
  MPI_Allreduce(own.data(), result.data(), 4, MPI_DOUBLE, op, MPI_COMM_WORLD);
  Say("user_op", HashOf(result));
  MPI_Op_free(&op);
}

void Odds() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_processor_name(text, &length);
  Say("host", HashOf(text, static_cast<size_t>(length)));
  MPI_Get_library_version(text, &length);
  Say("library", HashOf(text, static_cast<size_t>(length)));
  int major = 0;
  int minor = 0;
  MPI_Get_version(&major, &minor);
  Say("version", static_cast<uint64_t>(major * 10 + minor));
  int* bound = nullptr;
  int flag = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&bound), &flag);
  Require(flag != 0 && *bound >= 32767, "tags");
  Say("tag_ub", static_cast<uint64_t>(*bound));
  int keyval = 0;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, nullptr);
  MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &g_rank);
  int* mine = nullptr;
  MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, static_cast<void*>(&mine), &flag);
  Require(flag != 0 && mine == &g_rank, "attribute");
  MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
  MPI_Comm_free_keyval(&keyval);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "key", "value");
  char value[16] = {};
  MPI_Info_get(info, "key", 15, value, &flag);
  Require(flag != 0 && std::strcmp(value, "value") == 0, "info");
  MPI_Info_get(info, "none", 15, value, &flag);
  Require(flag == 0, "no info");
  MPI_Info_free(&info);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int error = MPI_Send(&g_rank, 1, MPI_INT, g_size + 5, 0, MPI_COMM_WORLD);
  Require(error != MPI_SUCCESS, "no such rank");
  int klass = 0;
  MPI_Error_class(error, &klass);
  Require(klass == MPI_ERR_RANK, "class");
  char words[MPI_MAX_ERROR_STRING] = {};
  MPI_Error_string(error, words, &length);
  Say("error", HashOf(words, static_cast<size_t>(length)));
  void* memory = nullptr;
  MPI_Alloc_mem(1000, MPI_INFO_NULL, static_cast<void*>(&memory));
  std::memset(memory, 1, 1000);
  MPI_Free_mem(memory);
  int is = 0;
  MPI_Initialized(&is);
  Require(is == 1, "initialized");
  MPI_Finalized(&is);
  Require(is == 0, "finalized");
  std::vector<char> room(1 << 16);
  MPI_Buffer_attach(room.data(), static_cast<int>(room.size()));
  int number = Random<int>(1)[0];
  MPI_Bsend(&number, 1, MPI_INT, Next(), 30, MPI_COMM_WORLD);
  MPI_Recv(&number, 1, MPI_INT, Previous(), 30, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  Say("bsend", static_cast<uint64_t>(number));
  void* detached = nullptr;
  int size = 0;
  MPI_Buffer_detach(static_cast<void*>(&detached), &size);
  Require(detached == room.data() && size == static_cast<int>(room.size()), "detached");
  const double begin = MPI_Wtime();
  double now = begin;
  uint64_t looked = 0;
  for (; now - begin < 1e-4; ++looked) now = MPI_Wtime();
  Say("looked", looked);
  Say("time", HashOf(&now, sizeof now));
  const double tick = MPI_Wtick();
  Say("tick", HashOf(&tick, sizeof tick));
}

void Large() {
  auto own = Random<double>(300000);
  std::vector<double> sum(own.size());
  MPI_Allreduce(own.data(), sum.data(), static_cast<int>(own.size()), MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);
  Say("large", HashOf(sum));
  // More requests and statuses than an event has room for.
  constexpr int kMany = 700;
  std::vector<int> send = Random<int>(kMany);
  std::vector<int> receive(kMany);
  std::vector<MPI_Request> requests(2 * kMany);
  std::vector<MPI_Status> statuses(2 * kMany);
  for (int i = 0; i < kMany; ++i) {
    const auto at = static_cast<size_t>(i);
    MPI_Irecv(&receive[at], 1, MPI_INT, Previous(), 100 + i, MPI_COMM_WORLD, &requests[at]);
    MPI_Isend(&send[at], 1, MPI_INT, Next(), 100 + i, MPI_COMM_WORLD, &requests[at + kMany]);
  }
  MPI_Waitall(2 * kMany, requests.data(), statuses.data());
  Require(statuses[kMany - 1].MPI_TAG == 100 + kMany - 1, "last status");
  Say("many", HashOf(receive));
}

// Threads that communicate at the same time, each on a communicator of its own.
void Threads() {
  std::vector<MPI_Comm> comms(3);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<uint64_t> hashes(comms.size());
  std::vector<std::vector<int>> data;
  for (size_t t = 0; t < comms.size(); ++t) data.push_back(Random<int>(200));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < comms.size(); ++t)
    threads.emplace_back([&, t] {
      std::vector<int> receive(10);
      for (size_t i = 0; i + 10 <= data[t].size(); i += 10) {
        MPI_Request requests[2];
        MPI_Irecv(receive.data(), 10, MPI_INT, Previous(), 1, comms[t], &requests[0]);
        MPI_Isend(&data[t][i], 10, MPI_INT, Next(), 1, comms[t], &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        hashes[t] = hashes[t] * 31 + HashOf(receive);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < comms.size(); ++t) {
    Say("thread", hashes[t]);
    MPI_Comm_free(&comms[t]);
  }
}

// Waits to be killed.
void Hang() {
  int nothing = 0;
  MPI_Recv(&nothing, 1, MPI_INT, Next(), 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void File() {
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "written", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_close(&file);
}

void Window() {
  MPI_Win window;
  MPI_Win_create(&g_rank, sizeof g_rank, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_free(&window);
}

void Fortran() {
  Require(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)) == MPI_COMM_WORLD, "Fortran");
}

struct Theme {
  const char* name;
  void (*run)();
  bool when_asked;
};

constexpr Theme kThemes[] = {
    {"two", TwoRanks, false},
    {"any", AnySource, false},
    {"requests", Requests, false},
    {"persistent", Persistent, false},
    {"collectives", Collectives, false},
    {"notwaiting", NotWaiting, false},
    {"types", Types, false},
    {"communicators", Communicators, false},
    {"large", Large, false},
    {"threads", Threads, true},
    {"hang", Hang, true},
    {"file", File, true},
    {"window", Window, true},
    {"fortran", Fortran, true},
    {"odds", Odds, false},
};

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  for (const Theme& theme : kThemes) {
    const bool asked = std::any_of(
        argv + 1, argv + argc, [&theme](const char* a) { return std::strcmp(a, theme.name) == 0; });
    if (!asked && (argc > 1 || theme.when_asked)) continue;
    if (theme.run == Threads && provided < MPI_THREAD_MULTIPLE) continue;
    g_out.clear();
    theme.run();
    MPI_Barrier(MPI_COMM_WORLD);
    std::printf("rank %d of %d: %s%s\n", g_rank, g_size, theme.name, g_out.c_str());
    std::fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}

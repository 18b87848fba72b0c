#include "preload/hooks/python/c10d_api.h"

#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#include "api/c10d_table.h"
#include "api/table.h"
#include "common/runtime/errno_keeper.h"
#include "digest/digest.h"
#include "preload/calls/call.h"
#include "preload/calls/group_calls.h"
#include "preload/calls/life_calls.h"
#include "preload/engine/engine.h"
#include "preload/hooks/export.h"
#include "preload/process/guard.h"
#include "preload/stack/python_stack.h"

namespace deja::preload {
namespace {

// Tensors one after the other: where they lie if there is one, else a copy.
class Flat {
 public:
  Flat(const deja_piece* pieces, uint64_t count) : pieces_(pieces, pieces == nullptr ? 0 : count) {
    for (const deja_piece& piece : pieces_) bytes_ += piece.bytes;
    if (pieces_.size() == 1) data_ = pieces_[0].data;
    if (pieces_.size() > 1) data_ = copy_ = std::malloc(bytes_ == 0 ? 1 : bytes_);
    if (data_ == nullptr) bytes_ = 0;
  }
  ~Flat() { std::free(copy_); }
  Flat(const Flat&) = delete;
  Flat& operator=(const Flat&) = delete;

  void Gather() {
    if (copy_ == nullptr) return;
    auto* to = static_cast<std::byte*>(copy_);
    for (const deja_piece& piece : pieces_) {
      if (piece.bytes != 0) std::memcpy(to, piece.data, piece.bytes);
      to += piece.bytes;
    }
  }
  void Scatter() {
    if (copy_ == nullptr) return;
    const auto* from = static_cast<const std::byte*>(copy_);
    for (const deja_piece& piece : pieces_) {
      if (piece.bytes != 0) std::memcpy(piece.data, from, piece.bytes);
      from += piece.bytes;
    }
  }
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  std::span<const deja_piece> pieces_;
  void* data_ = nullptr;
  void* copy_ = nullptr;
  uint64_t bytes_ = 0;
};

uint64_t ArgumentOf(api::Role role, deja_group_call& call, const Flat& input, const Flat& output,
                    uint64_t element) {
  switch (role) {
    case api::Role::kNewComm:
      return api::ToWord(&call.group);
    case api::Role::kComm:
      return call.group;
    case api::Role::kNRanks:
      return api::ToWord(call.nranks);
    case api::Role::kRank:
    case api::Role::kRoot:
    case api::Role::kPeer:
      return api::ToWord(call.peer);
    case api::Role::kString:
      return api::ToWord(call.name);
    case api::Role::kIn:
      return api::ToWord(input.data());
    case api::Role::kInCount:
      return input.bytes() / element;
    case api::Role::kOut:
      return api::ToWord(output.data());
    case api::Role::kOutCount:
      return output.bytes() / element;
    case api::Role::kDType:
      return api::ToWord(call.dtype);
    case api::Role::kRedOp:
      return api::ToWord(call.op);
    case api::Role::kInt:
      return api::ToWord(call.tag);
    default:
      return 0;
  }
}

// Inside the real call of an operation. A plug-in's backend may be written in Python and use groups
// and stores of its own, which a replay does not make.
constinit thread_local bool t_in_real_call __attribute__((tls_model("initial-exec"))) = false;

// The engine, on threads of the process group's library too: their callbacks are the program's.
Engine* EngineForGroups() {
  return t_in_real_call ? nullptr : GetEngine();
}

// A group that was made inside another one's real call has no number.
bool IsInnerGroup(const api::ApiInfo& info, const deja_group_call& call) {
  return call.group == 0 && info.Find(api::Role::kNewComm) < 0;
}

class RealCall {
 public:
  RealCall() : before_(std::exchange(t_in_real_call, true)) {}
  ~RealCall() { t_in_real_call = before_; }
  RealCall(const RealCall&) = delete;
  RealCall& operator=(const RealCall&) = delete;

 private:
  Guard guard_;
  bool before_;
};

std::string_view TextOf(const char* data, uint64_t size) {
  return data == nullptr ? std::string_view() : std::string_view(data, size);
}

}  // namespace
}  // namespace deja::preload

using namespace deja::preload;  // NOLINT: the entry points below are this file's only names

DEJA_EXPORT int deja_impl_mode() {
  Engine* engine = GetEngine();
  return engine == nullptr ? 0 : static_cast<int>(engine->groups->ModeOfGroups());
}

DEJA_EXPORT int deja_impl_in_real_call() {
  return t_in_real_call ? 1 : 0;
}

DEJA_EXPORT void deja_impl_library(int begin) {
  if (begin != 0)
    ++t_guard_depth;
  else if (t_guard_depth != 0)
    --t_guard_depth;
}

DEJA_EXPORT int deja_impl_group_call(deja_group_call* call, void (*real)(void*), void* context) {
  const deja::api::ApiInfo* info = deja::api::FindC10d(std::string_view(call->function));
  const uint64_t element = deja::digest::ElementSize(static_cast<uint32_t>(call->dtype));
  Engine* engine = EngineForGroups();
  if (engine == nullptr || info == nullptr || element == 0 || call->size != sizeof *call ||
      IsInnerGroup(*info, *call)) {
    real(context);
    return 0;
  }
  const deja::ErrnoKeeper keep;
  Flat input(call->inputs, call->input_count);
  Flat output(call->outputs, call->output_count);
  input.Gather();
  struct Invocation : GroupCall {
    void (*real)(void*);
    void* context;
    deja_group_call* passed;
  } made;
  made.info = info;
  made.real = real;
  made.context = context;
  made.passed = call;
  made.identity = call->identity;
  made.invoke = [](Call& c) {
    auto& self = static_cast<Invocation&>(c);
    RealCall real_call;
    self.real(self.context);
    self.error = TextOf(self.passed->error, self.passed->error_size);
    self.result = self.passed->error == nullptr ? 0 : 1;
  };
  for (uint32_t i = 0; i < info->param_count; ++i)
    made.args[i] = ArgumentOf(info->params[i].role, *call, input, output, element);
  {
    Guard guard;
    const uint32_t before = EnterPythonStack(call->python_stack);
    engine->groups->OnGroupCall(made);
    EnterPythonStack(before);
  }
  call->operation = made.operation;
  if (made.served) {
    output.Scatter();
    call->state = static_cast<int32_t>(made.state);
    call->src = made.src;
    call->error = made.error.empty() ? nullptr : made.error.data();
    call->error_size = made.error.size();
  }
  return made.served ? 1 : 0;
}

DEJA_EXPORT void deja_impl_group_done(const deja_group_done* done) {
  Engine* engine = EngineForGroups();
  if (engine == nullptr || done->size != sizeof *done) return;
  const deja::ErrnoKeeper keep;
  Flat output(done->outputs, done->output_count);
  output.Gather();
  GroupEnd end;
  end.group = done->group;
  end.operation = done->operation;
  end.dtype = static_cast<uint32_t>(done->dtype);
  end.output = {static_cast<const std::byte*>(output.data()), output.bytes()};
  end.src = done->src;
  end.failed = done->error != nullptr;
  end.error = TextOf(done->error, done->error_size);
  {
    Guard guard;
    engine->groups->OnGroupDone(end);
  }
}

DEJA_EXPORT int deja_impl_store(deja_store_call* call, void (*real)(void*), void* context) {
  const deja::api::ApiInfo* info = deja::api::FindC10d(std::string_view(call->function));
  Engine* engine = EngineForGroups();
  if (engine == nullptr || info == nullptr || call->size != sizeof *call) {
    real(context);
    return 0;
  }
  const deja::ErrnoKeeper keep;
  struct Invocation : StoreCall {
    void (*real)(void*);
    void* context;
    deja_store_call* passed;
  } made;
  made.info = info;
  made.real = real;
  made.context = context;
  made.passed = call;
  made.key = TextOf(call->key, call->key_size);
  made.of_rank = call->of_rank != 0;
  made.invoke = [](Call& c) {
    auto& self = static_cast<Invocation&>(c);
    Guard guard;
    self.real(self.context);
    self.value = TextOf(self.passed->value, self.passed->value_size);
    self.result = self.passed->failed != 0 ? 1 : 0;
  };
  {
    Guard guard;
    engine->groups->OnStoreCall(made);
  }
  if (made.answer == AnswerFrom::kReal) return 0;
  call->failed = made.result != 0 ? 1 : 0;
  call->value = made.value.data();
  call->value_size = made.value.size();
  return made.answer == AnswerFrom::kServed ? 1 : -1;
}

DEJA_EXPORT void deja_impl_not_recorded(const char* what, int may_be) {
  Engine* engine = EngineForGroups();
  if (engine == nullptr || what == nullptr) return;
  Guard guard;
  engine->life->OnNotRecorded(what, may_be != 0, "");
}

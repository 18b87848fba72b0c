#include "preload/hooks/python/group_operations.h"

#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#include "api/c10d_table.h"
#include "api/table.h"
#include "common/runtime/errno_keeper.h"
#include "digest/digest.h"
#include "preload/process/guard.h"
#include "preload/stack/python_stack.h"

namespace deja::preload {
namespace {

// Tensors one after the other: where they lie if there is one, else a copy.
class Flat {
 public:
  explicit Flat(const Pieces& pieces) : pieces_(pieces.all, pieces.count) {
    for (const Piece& piece : pieces_) bytes_ += piece.bytes;
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
    for (const Piece& piece : pieces_) {
      if (piece.bytes != 0) std::memcpy(to, piece.data, piece.bytes);
      to += piece.bytes;
    }
  }
  void Scatter() {
    if (copy_ == nullptr) return;
    const auto* from = static_cast<const std::byte*>(copy_);
    for (const Piece& piece : pieces_) {
      if (piece.bytes != 0) std::memcpy(piece.data, from, piece.bytes);
      from += piece.bytes;
    }
  }
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  std::span<const Piece> pieces_;
  void* data_ = nullptr;
  void* copy_ = nullptr;
  uint64_t bytes_ = 0;
};

uint64_t ArgumentOf(api::Role role, GroupOperation& call, const Flat& input, const Flat& output,
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

constinit thread_local bool t_in_real_call __attribute__((tls_model("initial-exec"))) = false;

// A group that was made inside another one's real call has no number.
bool IsInnerGroup(const api::ApiInfo& info, const GroupOperation& call) {
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

}  // namespace

bool IsInRealCall() {
  return t_in_real_call;
}

Engine* EngineForGroups() {
  return t_in_real_call ? nullptr : GetEngine();
}

bool CallGroup(GroupOperation& operation) {
  const api::ApiInfo* info = api::FindC10d(operation.function);
  const uint64_t element = digest::ElementSize(operation.dtype);
  Engine* engine = EngineForGroups();
  if (engine == nullptr || info == nullptr || element == 0 || IsInnerGroup(*info, operation)) {
    std::string_view error;
    operation.real(operation.context, error);
    return false;
  }
  const ErrnoKeeper keep;
  Flat input(operation.inputs);
  Flat output(operation.outputs);
  input.Gather();
  struct Invocation : GroupCall {
    GroupOperation* passed;
  } made;
  made.info = info;
  made.passed = &operation;
  made.identity = operation.identity;
  made.invoke = [](Call& call) {
    auto& self = static_cast<Invocation&>(call);
    const RealCall real_call;
    self.result = self.passed->real(self.passed->context, self.error) ? 1 : 0;
  };
  for (uint32_t i = 0; i < info->param_count; ++i)
    made.args[i] = ArgumentOf(info->params[i].role, operation, input, output, element);
  {
    const Guard guard;
    const uint32_t before = EnterPythonStack(operation.python_stack);
    engine->groups->OnGroupCall(made);
    EnterPythonStack(before);
  }
  operation.operation = made.operation;
  if (!made.served) return false;
  output.Scatter();
  operation.state = made.state;
  operation.src = made.src;
  operation.error = made.error;
  return true;
}

void EndGroupOperation(GroupEnd& end, const Pieces& outputs) {
  Engine* engine = EngineForGroups();
  if (engine == nullptr) return;
  const ErrnoKeeper keep;
  Flat output(outputs);
  output.Gather();
  end.output = {static_cast<const std::byte*>(output.data()), output.bytes()};
  const Guard guard;
  engine->groups->OnGroupDone(end);
}

}  // namespace deja::preload

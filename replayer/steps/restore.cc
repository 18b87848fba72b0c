#include "replayer/steps/restore.h"

#include <charconv>
#include <cstring>
#include <map>

#include "api/nccl_table.h"
#include "digest/digest.h"
#include "digest/elements.h"
#include "preload/cuda/device.h"
#include "preload/process/guard.h"

namespace deja::replayer {

using preload::CheckpointRegistry;
using preload::RegisteredObject;

namespace {

uint64_t BytesOf(const format::CheckpointItem& item) {
  const uint64_t size = std::max(digest::ElementSize(item.tensor.dtype), 1u);
  uint64_t bytes = 0;
  return __builtin_mul_overflow(item.tensor.count, size, &bytes) ? ~uint64_t{0} : bytes;
}

template <typename Extents>
std::string TypeText(uint32_t dtype, const Extents& shape) {
  std::string text = digest::DTypeText(dtype);
  text += "[";
  for (auto extent : shape) text += (text.back() == '[' ? "" : "x") + std::to_string(extent);
  return text + "]";
}

// Empty: it fits.
std::string Misfit(const RegisteredObject& object, const format::CheckpointItem& item) {
  if (object.by_callbacks() && item.opaque) return {};
  if (object.opaque() && item.opaque) {
    if (object.bytes == item.tensor.count) return {};
    return "has " + std::to_string(object.bytes) + " bytes, recorded " +
           std::to_string(item.tensor.count);
  }
  const std::span<const int64_t> shape(object.shape, static_cast<size_t>(object.dims));
  if (object.opaque() == item.opaque && object.dtype == item.tensor.dtype &&
      std::equal(shape.begin(), shape.end(), item.shape.begin(), item.shape.end(),
                 [](int64_t is, uint64_t was) { return static_cast<uint64_t>(is) == was; }))
    return {};
  const std::string is = object.opaque() ? "opaque state" : TypeText(object.dtype, shape);
  const std::string was = item.opaque ? "opaque state" : TypeText(item.tensor.dtype, item.shape);
  return "is " + is + ", recorded " + was;
}

// The number of `name` among the threads that `parent` makes; 0: it is none of them.
uint32_t NumberUnder(std::string_view parent, std::string_view name) {
  if (name.size() <= parent.size() + 1 || name.substr(0, parent.size()) != parent ||
      name[parent.size()] != '.')
    return 0;
  uint32_t number = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + parent.size() + 1, end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? number : 0;
}

}  // namespace

std::vector<RestoredObject> MatchRegistered(const format::RecordedCheckpoint& checkpoint,
                                            std::vector<std::string>& problems) {
  std::map<std::string, const format::CheckpointItem*> items;
  for (const format::CheckpointItem& item : checkpoint.items) items[item.name] = &item;
  std::vector<RestoredObject> matched;
  RegisteredObject object;
  for (size_t i = 0; CheckpointRegistry::Get().At(i, object); ++i) {
    auto found = items.find(object.name);
    if (found == items.end()) {
      problems.push_back("the program registers '" + std::string(object.name) +
                         "', which the checkpoint does not have");
      continue;
    }
    const std::string misfit = Misfit(object, *found->second);
    if (!misfit.empty()) problems.push_back("'" + found->first + "' " + misfit);
    matched.push_back({object, found->second});
    items.erase(found);
  }
  for (const auto& [name, item] : items)
    problems.push_back("the checkpoint has '" + name +
                       "', which the program has not registered before its first step");
  return matched;
}

void FindMissing(Session& session, const ThreadState& thread, std::vector<std::string>& problems) {
  const ReplayPlan& plan = session.plan();
  const LateStart& start = *plan.start();
  const preload::ThreadRecord& self = preload::Self();
  if (thread.recorded == kNone ||
      plan.threads()[thread.recorded].index != start.checkpoint().at.thread) {
    problems.push_back("the first step is on another thread than the checkpoint's");
    return;
  }
  for (uint32_t i = 0; i < plan.threads().size(); ++i) {
    const uint32_t number = NumberUnder(self.name, plan.threads()[i].name);
    if (number > self.children && number <= start.checkpoint().threads_made && start.GoesOn(i))
      problems.push_back("thread " + plan.threads()[i].name +
                         " was made after the first step and is still at work");
  }
  for (const RecordedCall& call : plan.calls()) {
    if (call.created.size == 0 || plan.IsAhead(call.thread, call.enter_seq, call.time_ns)) continue;
    for (const RecordedComm& comm : plan.Created(call.created))
      if (plan.LastOperation(comm.number) > start.OperationsOf(comm.number) &&
          !session.operations().HasComm(comm.number))
        problems.push_back("communicator " + std::to_string(comm.number - 1) +
                           (comm.name.empty() ? "" : " (" + comm.name + ")") +
                           " was made after the first step and is still used");
  }
}

std::string RestoreObject(Session& session, const RestoredObject& restored) {
  const std::string name = "'" + restored.item->name + "'";
  const uint64_t size = BytesOf(*restored.item);
  std::vector<std::byte> bytes;
  {
    const preload::Guard guard;
    if (size != 0) {
      auto read = session.payloads().Read(restored.item->tensor.hash, size);
      if (!read) return "the recorded bytes of " + name + " cannot be read";
      bytes = std::move(*read);
    }
    if (!restored.object.by_callbacks()) {
      if (size == 0) return {};
      if (!preload::IsHostMemory(restored.object.data))
        return preload::WriteShown(restored.object.data, bytes)
                   ? ""
                   : "the CUDA driver did not take the bytes of " + name;
      std::memcpy(restored.object.data, bytes.data(), bytes.size());
      return {};
    }
  }
  const int result = restored.object.load(restored.object.user, bytes.data(), bytes.size());
  if (result == 0) return {};
  return "the program's callback for " + name + " could not load it (it returned " +
         std::to_string(result) + ")";
}

}  // namespace deja::replayer

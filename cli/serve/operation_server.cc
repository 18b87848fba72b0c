#include "cli/serve/operation_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "api/c10d_table.h"
#include "cli/tensors/tensor_lookup.h"
#include "common/text/hex_text.h"
#include "digest/digest.h"
#include "digest/elements.h"

namespace deja::cli {
namespace {

using api::Role;

// What of an operation's arguments has to be as recorded.
bool IsCompared(Role role) {
  return role == Role::kInCount || role == Role::kOutCount || role == Role::kDType ||
         role == Role::kRedOp || role == Role::kRoot || role == Role::kPeer || role == Role::kInt;
}

nlohmann::json NamedValue(Role role, uint64_t word) {
  if (role == Role::kDType) return digest::DTypeText(word);
  return static_cast<int64_t>(word);
}

nlohmann::json RecordedSignature(const RecordedOperation& operation) {
  const api::ApiInfo* info = api::FindC10d(operation.api);
  nlohmann::json signature = {{"operation", info == nullptr ? "" : info->name}};
  for (uint32_t i = 0; info != nullptr && i < info->param_count && i < operation.args.size(); ++i)
    if (IsCompared(info->params[i].role))
      signature[info->params[i].name] = NamedValue(info->params[i].role, operation.args[i]);
  return signature;
}

// What is no integer stays as it was sent: it differs from everything that was recorded. The
// library would convert it, and for numbers beyond the type's range that is undefined.
nlohmann::json LiveValue(Role role, const nlohmann::json& words, const char* name) {
  const auto it = words.find(name);
  if (it == words.end()) return NamedValue(role, 0);
  if (!it->is_number_integer() && !it->is_boolean()) return *it;
  return NamedValue(role, static_cast<uint64_t>(it->get<int64_t>()));
}

nlohmann::json LiveSignature(const api::ApiInfo& info, const nlohmann::json& words) {
  nlohmann::json signature = {{"operation", info.name}};
  for (uint32_t i = 0; i < info.param_count; ++i) {
    const api::ParamInfo& param = info.params[i];
    if (IsCompared(param.role)) signature[param.name] = LiveValue(param.role, words, param.name);
  }
  return signature;
}

const char* StateName(OperationState state) {
  switch (state) {
    case OperationState::kOpen:
      return "open";
    case OperationState::kDone:
      return "done";
    case OperationState::kFailed:
      return "failed";
    case OperationState::kRaised:
      return "raised";
  }
  return "open";
}

nlohmann::json StatsToJson(const format::TensorStats& stats) {
  return {{"nan", stats.nan_count},
          {"inf", stats.inf_count},
          {"min", digest::DoubleText(stats.min)},
          {"max", digest::DoubleText(stats.max)},
          {"sum", digest::DoubleText(stats.sum)}};
}

// The bytes that went in, where the trace has them. They are the result of an earlier operation, or
// this rank's part of what came out. The hash decides.
std::vector<std::byte> RecordedInput(const format::RankReader& reader,
                                     const RecordedOperation& operation, const RecordedGroup& group,
                                     size_t size) {
  if (auto bytes = ReadTensor(reader, *operation.input); bytes && bytes->size() == size)
    return std::move(*bytes);
  if (!operation.output) return {};
  const auto produced = ReadTensor(reader, *operation.output);
  if (!produced || produced->size() != size * group.nranks) return {};
  const auto begin = produced->begin() + static_cast<std::ptrdiff_t>(size * group.rank);
  std::vector<std::byte> part(begin, begin + static_cast<std::ptrdiff_t>(size));
  return digest::HashBytes(part) == operation.input->hash ? part : std::vector<std::byte>{};
}

ServedAnswer Refusal(std::string why) {
  return {{{"error", std::move(why)}}, {}};
}

}  // namespace

nlohmann::json OperationServer::Greeting() const {
  nlohmann::json groups = nlohmann::json::array();
  for (const RecordedGroup& group : recorded_.groups())
    groups.push_back({{"name", group.name},
                      {"rank", group.rank},
                      {"size", group.nranks},
                      {"operations", group.operations.size()}});
  return {{"rank", reader_.header().rank}, {"groups", groups}, {"nccl", recorded_.has_nccl()}};
}

ServedAnswer OperationServer::Answer(const nlohmann::json& words,
                                     std::span<const std::byte> input) {
  // A program may send what it likes: the library says by exceptions what it cannot convert.
  try {
    if (words.contains("store")) return AnswerStore(words);
    return AnswerOperation(words, input);
  } catch (const nlohmann::json::exception& error) {
    return Refusal(error.what());
  }
}

ServedAnswer OperationServer::AnswerStore(const nlohmann::json& words) {
  const std::pair asked(words.at("store").get<std::string>(), words.at("key").get<std::string>());
  const auto* values = recorded_.StoreAnswers(asked.first, asked.second);
  if (values == nullptr) return {{{"value", nullptr}}, {}};
  // As in a replay: the last answer stays.
  const size_t at = std::min(asked_[asked]++, values->size() - 1);
  return {{{"value", HexText((*values)[at])}}, {}};
}

ServedAnswer OperationServer::AnswerOperation(const nlohmann::json& words,
                                              std::span<const std::byte> input) {
  const nlohmann::json& asked = words.at("group");
  const api::ApiInfo* info = api::FindC10d(words.at("operation").get<std::string>());
  if (info == nullptr || !asked.is_number_unsigned() || asked >= recorded_.groups().size())
    return Refusal("there is no such operation or group");
  const auto number = asked.get<size_t>();
  const RecordedGroup& group = recorded_.groups()[number];
  const uint64_t now = served_[number] + 1;
  ServedAnswer answer{{{"number", now}}, {}};
  const nlohmann::json live = LiveSignature(*info, words);
  const auto found = group.operations.find(now);
  if (found == group.operations.end()) {
    answer.words["divergence"] = {{"kind", "end"}, {"recorded", nullptr}, {"live", live}};
    return answer;
  }
  const RecordedOperation& operation = found->second;
  const nlohmann::json recorded = RecordedSignature(operation);
  if (recorded != live) {
    answer.words["divergence"] = {{"kind", "signature"}, {"recorded", recorded}, {"live", live}};
    answer.words["divergence"]["stack"] = StackOf(operation);
    return answer;
  }
  served_[number] = now;
  answer.words["state"] = StateName(operation.state);
  answer.words["source"] = operation.source;
  if (!operation.error.empty()) answer.words["message"] = operation.error;
  const bool was_digested = operation.input && !operation.input->hash.IsZero();
  if (was_digested && digest::HashBytes(input) != operation.input->hash) {
    nlohmann::json divergence = Difference(operation, group, input);
    divergence.update({{"kind", "input"}, {"recorded", recorded}, {"live", live}});
    divergence["stack"] = StackOf(operation);
    answer.words["divergence"] = std::move(divergence);
  }
  if (operation.state == OperationState::kDone && operation.output) {
    auto bytes = ReadTensor(reader_, *operation.output);
    if (bytes)
      answer.bytes = std::move(*bytes);
    else
      answer.words["missing"] = bytes.error().message;
  } else if (operation.state == OperationState::kOpen) {
    answer.words["stack"] = StackOf(operation);
  }
  return answer;
}

nlohmann::json OperationServer::Difference(const RecordedOperation& operation,
                                           const RecordedGroup& group,
                                           std::span<const std::byte> input) const {
  const format::Tensor& seen = *operation.input;
  nlohmann::json difference = {
      {"recorded_numbers", StatsToJson(seen.stats)},
      {"live_numbers", StatsToJson(digest::ComputeStats(input, seen.dtype))}};
  const std::vector<std::byte> bytes = RecordedInput(reader_, operation, group, input.size());
  if (bytes.empty()) return difference;
  const auto element = digest::CompareElements(bytes, input, seen.dtype);
  difference["element"] = {{"first", element.first},
                           {"different", element.different},
                           {"count", seen.count},
                           {"recorded", element.a},
                           {"live", element.b}};
  if (element.ulps != UINT64_MAX) difference["element"]["ulps"] = element.ulps;
  return difference;
}

// The program's own frames, innermost first.
nlohmann::json OperationServer::StackOf(const RecordedOperation& operation) {
  nlohmann::json frames = nlohmann::json::array();
  const auto stack = summary_.stacks.find(operation.stack);
  if (stack == summary_.stacks.end()) return frames;
  for (const SourceFrame& frame : summary_.Resolve(symbolizer_, stack->second, false))
    if (IsProgramFrame(frame))
      frames.push_back({{"file", frame.file}, {"line", frame.line}, {"function", frame.function}});
  return frames;
}

}  // namespace deja::cli

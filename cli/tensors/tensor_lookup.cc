#include "cli/tensors/tensor_lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "cli/output.h"
#include "format/reader/imported.h"

namespace deja::cli {
namespace {

constexpr uint64_t kMostTensorBytes = uint64_t{16} << 30;

template <typename T>
bool ReadNumber(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool HasLetter(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalpha(c) != 0; });
}

// NAME or NAME@STEP.
TensorName ShownName(const std::string& text) {
  TensorName name;
  name.shown = text;
  const size_t at = text.rfind('@');
  uint64_t step = 0;
  if (at != std::string::npos && ReadNumber(std::string_view(text).substr(at + 1), step)) {
    name.shown.resize(at);
    name.step = step;
  }
  return name;
}

Result<std::vector<FoundTensor>> FindShown(const format::RankReader& reader,
                                           const TensorName& name) {
  using format::EventKind;
  using format::KindBit;
  std::optional<format::Tensor> last;
  bool is_known = false;
  std::optional<uint64_t> step;
  auto cursor = reader.Events();
  while (const format::Event* event =
             cursor->NextOf(KindBit(EventKind::kStep) | KindBit(EventKind::kSnapshot))) {
    if (const auto* begun = event->As<format::Step>()) step = begun->step;
    const auto* snapshot = event->As<format::Snapshot>();
    if (snapshot == nullptr || snapshot->name != name.shown) continue;
    is_known = true;
    if (!name.step || name.step == step) last = snapshot->tensor;
  }
  if (last) return std::vector<FoundTensor>{{*last, TensorRole::kShown}};
  return Fail(ErrorCode::kNotFound,
              is_known ? fmt::format("--tensor {}: rank {} has shown it in no step {}", name.Text(),
                                     reader.header().rank, *name.step)
                       : fmt::format("--tensor {}: rank {} has shown no tensor of that name; "
                                     "deja show --kind snapshot has their names",
                                     name.Text(), reader.header().rank));
}

}  // namespace

std::string TensorName::Text() const {
  if (shown.empty()) return fmt::format("{}:{}", comm, seq);
  return step ? fmt::format("{}@{}", shown, *step) : shown;
}

std::string_view NameOf(TensorRole role) {
  if (role == TensorRole::kShown) return "shown";
  return role == TensorRole::kResult ? "result" : "input";
}

Result<TensorName> ParseTensorName(const std::string& text) {
  TensorName name;
  const size_t colon = text.find(':');
  const std::string_view whole = text;
  if (colon == std::string::npos && HasLetter(text)) return ShownName(text);
  if (colon == std::string::npos || !ReadNumber(whole.substr(0, colon), name.comm) ||
      !ReadNumber(whole.substr(colon + 1), name.seq))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--tensor {}: neither COMM:SEQ nor a name; give numbers as `deja show` "
                            "prints them, such as 0:412",
                            text));
  return name;
}

Result<std::vector<FoundTensor>> FindTensors(const format::RankReader& reader,
                                             const TensorName& name) {
  using format::EventKind;
  using format::KindBit;
  if (!name.shown.empty()) return FindShown(reader, name);
  std::vector<FoundTensor> found;
  bool was_entered = false;
  bool has_results = false;
  auto cursor = reader.EventsFromOp(name.comm + 1, name.seq);
  const uint64_t kinds = KindBit(EventKind::kCallEnter) | KindBit(EventKind::kCallResults);
  while (const format::Event* event = has_results ? nullptr : cursor->NextOf(kinds)) {
    const auto is_it = [&](const auto& body) {
      return body.comm == name.comm + 1 && body.comm_seq == name.seq;
    };
    const auto take = [&](const auto& tensors, TensorRole role) {
      for (const format::Tensor& tensor : tensors)
        if (!tensor.hash.IsZero()) found.push_back({tensor, role});
    };
    if (const auto* enter = event->As<format::CallEnter>(); enter != nullptr && is_it(*enter)) {
      was_entered = true;
      take(enter->inputs, TensorRole::kInput);
    }
    if (const auto* results = event->As<format::CallResults>();
        results != nullptr && is_it(*results)) {
      has_results = true;
      take(results->outputs, TensorRole::kResult);
    }
  }
  if (found.empty() && was_entered && format::IsImported(reader.header().producer))
    return Fail(ErrorCode::kNotFound,
                fmt::format("--tensor {}: the trace was imported from dumps that hold no tensors; "
                            "record the job with deja record",
                            name.Text()));
  if (found.empty())
    return Fail(ErrorCode::kNotFound,
                was_entered || has_results
                    ? fmt::format("--tensor {}: its tensors were not digested; record at level "
                                  "digest or full",
                                  name.Text())
                    : fmt::format("--tensor {}: rank {} has no such operation", name.Text(),
                                  reader.header().rank));
  return found;
}

const FoundTensor& ChooseTensor(const std::vector<FoundTensor>& tensors, bool wants_input) {
  for (const FoundTensor& one : tensors)
    if ((one.role == TensorRole::kInput) == wants_input) return one;
  return tensors.front();
}

Result<std::vector<std::byte>> ReadTensor(const format::RankReader& reader,
                                          const format::Tensor& tensor) {
  const auto size = reader.PayloadSize(tensor.hash);
  if (!size)
    return Fail(ErrorCode::kNotFound,
                reader.Dropped(tensor.segment)
                    ? "its bytes left the window of kept payloads"
                    : "its bytes were not kept; level full keeps those of results");
  if (*size > kMostTensorBytes)
    return Fail(ErrorCode::kLimit, fmt::format("it has {}; at most {} are read", HumanBytes(*size),
                                               HumanBytes(kMostTensorBytes)));
  std::vector<std::byte> bytes(*size);
  DEJA_RETURN_IF_ERROR(reader.ReadPayload(tensor.hash, bytes));
  return bytes;
}

}  // namespace deja::cli

// TensorLookup: the tensors of one operation of a rank, and their bytes.
//
// Reads the recording from the operation on. Errors say what was not recorded, and why. Main thread
// only.
#ifndef DEJA_CLI_TENSORS_TENSOR_LOOKUP_H_
#define DEJA_CLI_TENSORS_TENSOR_LOOKUP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {

// An operation, as `deja show --comm --seq` takes it; or a tensor that the program has shown
// (deja_tensor), by its name.
struct TensorName {
  uint32_t comm = 0;
  uint64_t seq = 0;
  std::string shown = {};                  // empty: the operation
  std::optional<uint64_t> step = {};       // of `shown`; none: the last one
  [[nodiscard]] std::string Text() const;  // "0:412", "conv1.weight@17"
};

// COMM:SEQ, NAME or NAME@STEP. A name has a letter and no colon. kInvalidArgument: the text is none
// of them.
Result<TensorName> ParseTensorName(const std::string& text);

enum class TensorRole { kInput, kResult, kShown };
std::string_view NameOf(TensorRole role);

struct FoundTensor {
  format::Tensor tensor;
  TensorRole role = TensorRole::kInput;
};

// An operation's inputs come first. A name stands for the last one, or the last of the step. An
// error is kNotFound: the rank has no such operation or name, or its tensors were not digested.
Result<std::vector<FoundTensor>> FindTensors(const format::RankReader& reader,
                                             const TensorName& name);

// The first result, or the first input if that is asked for or if there is no result.
const FoundTensor& ChooseTensor(const std::vector<FoundTensor>& tensors, bool wants_input);

// kNotFound: its bytes were not kept. kLimit: it is larger than the memory that this takes.
Result<std::vector<std::byte>> ReadTensor(const format::RankReader& reader,
                                          const format::Tensor& tensor);

}  // namespace deja::cli

#endif  // DEJA_CLI_TENSORS_TENSOR_LOOKUP_H_

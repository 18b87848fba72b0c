// TensorLookup: the tensors of one operation of a rank, and their bytes.
//
// Reads the recording from the operation on. Errors say what was not recorded, and why. Main thread
// only.
#ifndef DEJA_CLI_TENSORS_TENSOR_LOOKUP_H_
#define DEJA_CLI_TENSORS_TENSOR_LOOKUP_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "format/reader/rank_reader.h"

namespace deja::cli {

// An operation, as `deja show --comm --seq` takes it.
struct TensorName {
  uint32_t comm = 0;
  uint64_t seq = 0;
  [[nodiscard]] std::string Text() const;  // "0:412"
};

// kInvalidArgument: the text is not COMM:SEQ.
Result<TensorName> ParseTensorName(const std::string& text);

struct FoundTensor {
  format::Tensor tensor;
  bool is_result = false;  // otherwise an input of the operation
};

// Inputs first. kNotFound: the rank has no such operation, or its tensors were not digested.
Result<std::vector<FoundTensor>> FindTensors(const format::RankReader& reader,
                                             const TensorName& name);

// The first result, or the first input if that is asked for or if there is no result.
const FoundTensor& ChooseTensor(const std::vector<FoundTensor>& tensors, bool wants_input);

// kNotFound: its bytes were not kept. kLimit: it is larger than the memory that this takes.
Result<std::vector<std::byte>> ReadTensor(const format::RankReader& reader,
                                          const format::Tensor& tensor);

}  // namespace deja::cli

#endif  // DEJA_CLI_TENSORS_TENSOR_LOOKUP_H_

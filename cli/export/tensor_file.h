// A tensor as a file of another library: NumPy's npy, safetensors, or what torch.load reads (pt).
//
// Pure but for the file; any thread. Errors are those of writing.
#ifndef DEJA_CLI_EXPORT_TENSOR_FILE_H_
#define DEJA_CLI_EXPORT_TENSOR_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/result.h"

namespace deja::cli {

// One tensor of one dimension.
struct TensorContents {
  std::string name;                  // in a file of named tensors: "0:412"
  uint32_t dtype = 0;                // by common/data_types.def; anything else is written as bytes
  uint64_t count = 0;                // elements
  std::span<const std::byte> bytes;  // borrowed
};

struct TensorFormat {
  const char* name;    // "npy"
  const char* ending;  // ".npy"
  // bfloat16 and float8 keep their types, but in npy, where they are unsigned integers.
  Status (*write)(const TensorContents& tensor, const std::string& path);
};
// The first one is the default.
std::span<const TensorFormat> TensorFormats();
// By its name, or by the ending of a file's name. Null: there is none.
const TensorFormat* TensorFormatNamed(std::string_view name);
const TensorFormat* TensorFormatOfFile(std::string_view path);

}  // namespace deja::cli

#endif  // DEJA_CLI_EXPORT_TENSOR_FILE_H_

// The 1,797 handwritten digits, split into what is trained on and what is tested on
// (data/README.md).
#ifndef DEJA_EXAMPLES_DIGITS_DATA_DATASET_H_
#define DEJA_EXAMPLES_DIGITS_DATA_DATASET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace digits {

constexpr size_t kSide = 8;
constexpr size_t kPixels = kSide * kSide;
constexpr size_t kShades = 17;  // pixels are 0 (paper) to 16 (ink)
constexpr size_t kClasses = 10;

struct Image {
  std::array<uint8_t, kPixels> pixels;  // row by row from the top left
  int32_t label;
};

struct Dataset {
  std::vector<Image> train;
  std::vector<Image> test;  // every fifth image, so that all writers are in both
};

// `path` may be empty: then it is data/digits.txt beside the program. Prints what is wrong and
// exits when there is no such file or it is not one.
Dataset LoadDataset(const std::string& path);

}  // namespace digits

#endif  // DEJA_EXAMPLES_DIGITS_DATA_DATASET_H_

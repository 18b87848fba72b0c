#include "dataset.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace digits {
namespace {

constexpr size_t kTestStride = 5;

std::string FindData() {
  std::string directory;
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  if (length > 0) {
    directory.assign(program, static_cast<size_t>(length));
    directory.resize(directory.rfind('/') + 1);
  }
  return directory + "data/digits.txt";
}

// One line: 64 shades, '0'-'9' and 'a'-'g', a space, the digit.
bool ParseImage(const std::string& line, Image* image) {
  if (line.size() != kPixels + 2 || line[kPixels] != ' ') return false;
  for (size_t i = 0; i < kPixels; ++i) {
    const char c = line[i];
    if (c >= '0' && c <= '9') {
      image->pixels[i] = static_cast<uint8_t>(c - '0');
    } else if (c >= 'a' && c <= 'g') {
      image->pixels[i] = static_cast<uint8_t>(c - 'a' + 10);
    } else {
      return false;
    }
  }
  image->label = line[kPixels + 1] - '0';
  return image->label >= 0 && image->label < static_cast<int32_t>(kClasses);
}

}  // namespace

Dataset LoadDataset(const std::string& path) {
  const std::string file = path.empty() ? FindData() : path;
  std::ifstream in(file);
  if (!in) {
    std::fprintf(stderr, "digits_train: cannot open the digits at %s; name them with --data=FILE\n",
                 file.c_str());
    std::exit(1);
  }
  Dataset dataset;
  std::string line;
  for (size_t number = 0; std::getline(in, line); ++number) {
    Image image;
    if (!ParseImage(line, &image)) {
      std::fprintf(stderr, "digits_train: %s:%zu is not 64 shades and a digit\n", file.c_str(),
                   number + 1);
      std::exit(1);
    }
    (number % kTestStride == kTestStride - 1 ? dataset.test : dataset.train).push_back(image);
  }
  if (dataset.test.empty()) {
    std::fprintf(stderr, "digits_train: %s holds too few images\n", file.c_str());
    std::exit(1);
  }
  return dataset;
}

}  // namespace digits

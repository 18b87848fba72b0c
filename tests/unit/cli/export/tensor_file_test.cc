// A tensor as a file of another library.
#include <gtest/gtest.h>
#include <zip.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/export/tensor_file.h"

namespace deja::cli {
namespace {

class TensorFile : public ::testing::Test {
 protected:
  TensorFile() {
    std::string name = testing::TempDir() + "tensor_file.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~TensorFile() override { std::filesystem::remove_all(folder_); }

  // The bytes of a file of four elements.
  std::string Written(const char* format, uint32_t dtype) {
    path_ = folder_ + "/tensor";
    std::filesystem::remove(path_);
    const Status done = TensorFormatNamed(format)->write(
        {"0:412", dtype, 4, std::as_bytes(std::span(bytes_))}, path_);
    EXPECT_TRUE(done) << done.error().message;
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::array<char, 16> bytes_ = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  std::string folder_;
  std::string path_;
};

TEST_F(TensorFile, FormatIsNamedOrFollowsFromTheFile) {
  EXPECT_STREQ(TensorFormats().front().name, "npy");
  EXPECT_STREQ(TensorFormatOfFile("a/gradients.pt")->name, "pt");
  EXPECT_EQ(TensorFormatOfFile("a/gradients"), nullptr);
  EXPECT_EQ(TensorFormatNamed("csv"), nullptr);
}

TEST_F(TensorFile, SafetensorsHasAHeaderAndTheElements) {
  const std::string file = Written("safetensors", 7);
  uint64_t size = 0;
  std::memcpy(&size, file.data(), sizeof size);
  EXPECT_EQ(size % 8, 0u);
  const auto header = nlohmann::json::parse(file.substr(8, size));
  EXPECT_EQ(header["0:412"]["dtype"], "F32");
  EXPECT_EQ(header["0:412"]["shape"], nlohmann::json({4}));
  EXPECT_EQ(header["0:412"]["data_offsets"], nlohmann::json({0, 16}));
  EXPECT_EQ(file.substr(8 + size), std::string(bytes_.data(), bytes_.size()));
  EXPECT_NE(Written("safetensors", 9).find("BF16"), std::string::npos);
}

TEST_F(TensorFile, PtIsAnArchiveWhoseElementsCanBeMapped) {
  const std::string file = Written("pt", 7);
  EXPECT_EQ(file.substr(64, 16), std::string(bytes_.data(), bytes_.size()));
  zip_t* archive = zip_open(path_.c_str(), ZIP_RDONLY, nullptr);
  ASSERT_NE(archive, nullptr);
  for (const char* name :
       {"archive/data/0", "archive/data.pkl", "archive/byteorder", "archive/version"})
    EXPECT_GE(zip_name_locate(archive, name, 0), 0) << name;
  zip_discard(archive);
  EXPECT_NE(file.find("ctorch\nFloatStorage\n"), std::string::npos);
  // A type without a storage class.
  EXPECT_NE(Written("pt", 10).find("ctorch\nfloat8_e4m3fn\n"), std::string::npos);
}

TEST_F(TensorFile, AFileThatCannotBeMadeIsAnError) {
  for (const TensorFormat& format : TensorFormats())
    EXPECT_FALSE(
        format.write({"0:1", 7, 4, std::as_bytes(std::span(bytes_))}, folder_ + "/none/tensor"));
}

}  // namespace
}  // namespace deja::cli

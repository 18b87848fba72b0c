// Unpickle: values of Python's pickles, and that nothing in one is called.
#include "cli/import/unpickle.h"

#include <gtest/gtest.h>

#include <string>

#include "cli/export/pickle.h"

namespace deja::cli {
namespace {

std::string Codes(std::initializer_list<int> codes) {
  std::string bytes;
  for (const int code : codes) bytes += static_cast<char>(code);
  return bytes;
}

TEST(UnpickleTest, ReadsWhatTheExportWrites) {
  Pickle pickle;
  pickle.BeginDict();
  pickle.Text("numbers");
  pickle.BeginList();
  for (const int64_t number :
       {int64_t{0}, int64_t{-1}, int64_t{255}, int64_t{65536}, int64_t{-70000}, int64_t{1} << 40})
    pickle.Number(number);
  pickle.EndList();
  pickle.Text("pair");
  pickle.BeginTuple();
  pickle.Text("a\n\"b");
  pickle.Bool(true);
  pickle.None();
  pickle.EndTuple();
  pickle.EndDict();
  pickle.Stop();
  const auto read = Unpickle(pickle.Take());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, nlohmann::json::parse(
                       R"({"numbers": [0, -1, 255, 65536, -70000, 1099511627776],
                           "pair": ["a\n\"b", true, null]})"));
}

// pickle.dumps([[1, 2.5], {"k": (3,)}], 4)
TEST(UnpickleTest, ReadsFramesAndMemos) {
  const std::string bytes =
      Codes({0x80, 4,    0x95, 33,   0, 0,   0,    0,    0, 0,    0,    ']', 0x94, '(',
             ']',  0x94, '(',  'K',  1, 'G', 0x40, 0x04, 0, 0,    0,    0,   0,    0,
             'e',  '}',  0x94, 0x8c, 1, 'k', 0x94, 'K',  3, 0x85, 0x94, 's', 'e',  '.'});
  const auto read = Unpickle(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->dump(), R"([[1,2.5],{"k":[3]}])");
}

TEST(UnpickleTest, ListsOfNumbersAsPyTorchMakesThem) {
  const std::string bytes = Codes({0x80, 2}) + "ctorch.jit._pickle\nbuild_intlist\n" +
                            Codes({']', '(', 'K', 7, 'K', 8, 'e', 0x85, 'R', '.'});
  const auto read = Unpickle(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->dump(), "[7,8]");
}

TEST(UnpickleTest, CallsNothing) {
  const auto read = Unpickle(Codes({0x80, 2}) + "cos\nsystem\n" +
                             Codes({'X', 2, 0, 0, 0, 'i', 'd', 0x85, 'R', '.'}));
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("os.system"), std::string::npos) << read.error().message;
}

TEST(UnpickleTest, EveryPieceOfAPickleIsAnErrorAndNoCrash) {
  Pickle pickle;
  pickle.BeginDict();
  pickle.Text("entries");
  pickle.BeginList();
  pickle.Number(70000);
  pickle.EndList();
  pickle.EndDict();
  pickle.Stop();
  const std::string whole = pickle.Take();
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(Unpickle(std::string_view(whole).substr(0, size))) << size;
}

TEST(UnpickleTest, AListThatHoldsItselfIsAnError) {
  EXPECT_FALSE(Unpickle(Codes({0x80, 2, ']', 'q', 0, 'h', 0, 'a', '.'})));
}

// Each list holds the one before twice.
TEST(UnpickleTest, ValuesThatGrowByReferencesAreBounded) {
  std::string bytes = Codes({0x80, 2, 'K', 1, 'q', 0});
  for (int i = 0; i < 60; ++i) bytes += Codes({'(', 'h', i, 'h', i, 'l', 'q', i + 1});
  EXPECT_FALSE(Unpickle(bytes + "."));
}

// A short pickle that remembers a value under a high number takes no memory for those below it.
TEST(UnpickleTest, ANumberBeyondThePickleIsRefused) {
  const auto read = Unpickle(Codes({0x80, 2, 'N', 'r', 0xff, 0xff, 0xff, 0x03, '.'}));
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("a reference is out of bounds"), std::string::npos);
}

}  // namespace
}  // namespace deja::cli

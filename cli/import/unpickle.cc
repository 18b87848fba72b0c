#include "cli/import/unpickle.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace deja::cli {
namespace {

using Index = uint32_t;  // of a value

// A ring of 20,000 entries with 30 frames each has some five million.
constexpr size_t kMostValues = size_t{1} << 24;
constexpr size_t kDeepest = 64;
constexpr size_t kLeastConverted = 1 << 16;
constexpr size_t kMostPerByte = 16;

struct Value {
  enum class Kind : uint8_t { kPlain, kList, kDict, kMark, kListMaker };
  Kind kind = Kind::kPlain;
  nlohmann::json plain;      // neither list nor dictionary
  std::vector<Index> items;  // of a dictionary: a key and a value in turn
};

class Machine {
 public:
  explicit Machine(std::string_view bytes) : bytes_(bytes) {}

  Result<nlohmann::json> Run() {
    while (!is_done_) {
      if (at_ >= bytes_.size()) return Fail(ErrorCode::kTruncated, "the pickle ends early");
      DEJA_RETURN_IF_ERROR(Step(static_cast<uint8_t>(bytes_[at_++])));
      if (values_.size() > kMostValues)
        return Fail(ErrorCode::kLimit, "the pickle has too many values");
    }
    if (stack_.empty()) return Bad("it has no value");
    return ToJson(stack_.back(), 0);
  }

 private:
  static tl::unexpected<Error> Bad(std::string_view what) {
    return Fail(ErrorCode::kForeign, fmt::format("no pickle of plain values: {}", what));
  }

  Result<std::string_view> Take(uint64_t count) {
    if (count > bytes_.size() - at_) return Fail(ErrorCode::kTruncated, "the pickle ends early");
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  Result<uint64_t> Unsigned(size_t count) {
    DEJA_ASSIGN_OR_RETURN(const std::string_view bytes, Take(count));
    uint64_t number = 0;
    std::memcpy(&number, bytes.data(), bytes.size());
    return number;
  }
  Result<std::string_view> Line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) return Fail(ErrorCode::kTruncated, "the pickle ends early");
    const std::string_view line = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return line;
  }

  void Push(Value value) {
    values_.push_back(std::move(value));
    stack_.push_back(static_cast<Index>(values_.size() - 1));
  }
  void PushPlain(nlohmann::json plain) { Push({Value::Kind::kPlain, std::move(plain), {}}); }
  void PushList(std::vector<Index> items) { Push({Value::Kind::kList, {}, std::move(items)}); }

  // What is on the stack above the last mark, which goes too.
  Result<std::vector<Index>> TakeToMark() {
    for (size_t i = stack_.size(); i-- > 0;) {
      if (values_[stack_[i]].kind != Value::Kind::kMark) continue;
      std::vector<Index> items(stack_.begin() + static_cast<std::ptrdiff_t>(i) + 1, stack_.end());
      stack_.resize(i);
      return items;
    }
    return Bad("a mark is missing");
  }
  Result<std::vector<Index>> TakeLast(size_t count) {
    if (stack_.size() < count) return Bad("a value is missing");
    std::vector<Index> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }
  Status AddTo(Value::Kind kind, Result<std::vector<Index>> items) {
    if (!items) return tl::unexpected(items.error());
    if (stack_.empty() || values_[stack_.back()].kind != kind) return Bad("a container is missing");
    std::vector<Index>& its = values_[stack_.back()].items;
    its.insert(its.end(), items->begin(), items->end());
    return {};
  }

  Status Text(Result<uint64_t> size) {
    if (!size) return tl::unexpected(size.error());
    DEJA_ASSIGN_OR_RETURN(const std::string_view text, Take(*size));
    PushPlain(std::string(text));
    return {};
  }
  Status Integer(size_t count) {
    DEJA_ASSIGN_OR_RETURN(const uint64_t number, Unsigned(count));
    PushPlain(number);
    return {};
  }
  Status Tuple(Result<std::vector<Index>> items) {
    if (!items) return tl::unexpected(items.error());
    PushList(std::move(*items));
    return {};
  }
  Status Remember(Result<uint64_t> number) {
    if (!number) return tl::unexpected(number.error());
    // Numbers count what is remembered, and each takes a byte at least.
    if (stack_.empty() || *number >= bytes_.size()) return Bad("a reference is out of bounds");
    if (memo_.size() <= *number) memo_.resize(*number + 1);
    memo_[*number] = stack_.back();
    return {};
  }
  Status Recall(Result<uint64_t> number) {
    if (!number) return tl::unexpected(number.error());
    if (*number >= memo_.size() || !memo_[*number]) return Bad("a reference leads nowhere");
    stack_.push_back(*memo_[*number]);
    return {};
  }
  // A little-endian number of any width in two's complement.
  Status Long() {
    DEJA_ASSIGN_OR_RETURN(const uint64_t size, Unsigned(1));
    DEJA_ASSIGN_OR_RETURN(const std::string_view bytes, Take(size));
    if (size > sizeof(int64_t)) return Bad("a number is too large");
    uint64_t number = size != 0 && (bytes.back() & 0x80) != 0 ? ~uint64_t{0} : 0;
    std::memcpy(&number, bytes.data(), bytes.size());
    PushPlain(static_cast<int64_t>(number));
    return {};
  }
  Status Float() {
    DEJA_ASSIGN_OR_RETURN(const std::string_view bytes, Take(8));
    uint64_t bits = 0;
    for (const char byte : bytes) bits = bits << 8 | static_cast<uint8_t>(byte);
    double number = 0;
    std::memcpy(&number, &bits, sizeof number);
    PushPlain(number);
    return {};
  }
  // Lists of numbers are made by functions of PyTorch's in its pickles.
  Status Global() {
    DEJA_ASSIGN_OR_RETURN(const std::string_view module, Line());
    DEJA_ASSIGN_OR_RETURN(const std::string_view name, Line());
    if (module != "torch.jit._pickle" || !name.starts_with("build_") || !name.ends_with("list"))
      return Bad(fmt::format("it names {}.{}", module.substr(0, 80), name.substr(0, 80)));
    Push({Value::Kind::kListMaker, {}, {}});
    return {};
  }
  Status Reduce() {
    DEJA_ASSIGN_OR_RETURN(const std::vector<Index> both, TakeLast(2));
    const std::vector<Index>& arguments = values_[both[1]].items;
    if (values_[both[0]].kind != Value::Kind::kListMaker || arguments.size() != 1)
      return Bad("it calls something");
    stack_.push_back(arguments[0]);
    return {};
  }

  // The letters and numbers are those of Python's pickletools.
  Status Step(uint8_t code) {
    switch (code) {
      case 0x80:  // PROTO
        return Take(1).map([](auto) {});
      case 0x95:  // FRAME
        return Take(8).map([](auto) {});
      case '.':
        is_done_ = true;
        return {};
      case '(':
        Push({Value::Kind::kMark, {}, {}});
        return {};
      case 'N':
        PushPlain(nullptr);
        return {};
      case 0x88:
      case 0x89:
        PushPlain(code == 0x88);
        return {};
      case 'G':
        return Float();
      case 'K':
        return Integer(1);
      case 'M':
        return Integer(2);
      case 'J': {
        DEJA_ASSIGN_OR_RETURN(const uint64_t number, Unsigned(4));
        PushPlain(static_cast<int32_t>(number));
        return {};
      }
      case 0x8a:
        return Long();
      case 'X':
        return Text(Unsigned(4));
      case 0x8c:
        return Text(Unsigned(1));
      case 0x8d:
        return Text(Unsigned(8));
      default:
        return StepOfContainers(code);
    }
  }

  Status StepOfContainers(uint8_t code) {
    switch (code) {
      case ']':
        PushList({});
        return {};
      case '}':
        Push({Value::Kind::kDict, {}, {}});
        return {};
      case ')':
        PushList({});
        return {};
      case 't':
      case 'l':
        return Tuple(TakeToMark());
      case 0x85:
      case 0x86:
      case 0x87:
        return Tuple(TakeLast(code - 0x84));
      case 'a':
        return AddTo(Value::Kind::kList, TakeLast(1));
      case 'e':
        return AddTo(Value::Kind::kList, TakeToMark());
      case 's':
        return AddTo(Value::Kind::kDict, TakeLast(2));
      case 'u':
        return AddTo(Value::Kind::kDict, TakeToMark());
      case 'q':
        return Remember(Unsigned(1));
      case 'r':
        return Remember(Unsigned(4));
      case 0x94:
        return Remember(static_cast<uint64_t>(memo_.size()));
      case 'h':
        return Recall(Unsigned(1));
      case 'j':
        return Recall(Unsigned(4));
      case 'c':
        return Global();
      case 'R':
        return Reduce();
      default:
        return Bad(fmt::format("it has the code {:#04x}", code));
    }
  }

  Result<nlohmann::json> ToJson(Index index, size_t depth) {
    // What refers to the same values again and again is larger than the pickle.
    if (depth > kDeepest || ++converted_ > kLeastConverted + kMostPerByte * bytes_.size())
      return Fail(ErrorCode::kLimit, "the pickle is too deep or refers to itself");
    const Value& value = values_[index];
    if (value.kind == Value::Kind::kPlain) {
      // A long text that is referred to often counts for what it takes.
      constexpr size_t kTextOfAValue = 64;
      if (value.plain.is_string())
        converted_ += value.plain.get_ref<const std::string&>().size() / kTextOfAValue;
      return value.plain;
    }
    if (value.kind == Value::Kind::kList) {
      nlohmann::json list = nlohmann::json::array();
      for (const Index item : value.items) {
        DEJA_ASSIGN_OR_RETURN(nlohmann::json its, ToJson(item, depth + 1));
        list.push_back(std::move(its));
      }
      return list;
    }
    if (value.kind != Value::Kind::kDict || value.items.size() % 2 != 0)
      return Bad("a container is not complete");
    nlohmann::json dict = nlohmann::json::object();
    for (size_t i = 0; i < value.items.size(); i += 2) {
      const Value& key = values_[value.items[i]];
      if (key.kind != Value::Kind::kPlain) return Bad("a key is no text");
      DEJA_ASSIGN_OR_RETURN(nlohmann::json its, ToJson(value.items[i + 1], depth + 1));
      dict[key.plain.is_string() ? key.plain.get<std::string>() : key.plain.dump()] =
          std::move(its);
    }
    return dict;
  }

  std::string_view bytes_;
  size_t at_ = 0;
  bool is_done_ = false;
  std::deque<Value> values_;
  std::vector<Index> stack_;
  std::vector<std::optional<Index>> memo_;
  size_t converted_ = 0;
};

}  // namespace

Result<nlohmann::json> Unpickle(std::string_view bytes) {
  return Machine(bytes).Run();
}

}  // namespace deja::cli

// A library of a few kilobytes with debug information: what the target of symbols begins with.
namespace sample {
template <typename T>
inline T Twice(T value) {
  return value + value + value / 3;
}
struct Adder {
  int by = 1;
  __attribute__((noinline)) int Add(int value) const { return Twice(value + by); }
};
}  // namespace sample

extern "C" int deja_fuzz_symbols(int value) {
  return sample::Adder{value}.Add(value) + static_cast<int>(sample::Twice(2.5 * value));
}

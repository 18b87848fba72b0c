// Elements of tensors in words, and where two tensors differ.
//
// Pure functions; any thread; allocates. Types are ncclDataType_t, or format::kRawBytes.
#ifndef DEJA_DIGEST_ELEMENTS_H_
#define DEJA_DIGEST_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace deja::digest {

// How two arrays of the same type and length differ.
struct ElementDifference {
  bool found = false;
  uint64_t first = 0;      // index of the first element that differs
  uint64_t different = 0;  // how many do
  uint64_t ulps = 0;       // distance of the first; UINT64_MAX: integers, or one of them is NaN
  std::string a;           // the first, as text
  std::string b;
};
// Compares two arrays of `dtype` of the same size. `found` is false if they are equal bit for bit.
ElementDifference CompareElements(std::span<const std::byte> a, std::span<const std::byte> b,
                                  uint32_t dtype);

// One element as text that gives the value back: "0.1", "nan", "-7", "0x3f".
std::string ElementText(const std::byte* element, uint32_t dtype);

// "float32"; "type 77" for one that this version does not know.
std::string DTypeText(uint64_t dtype);

// The shortest text that gives the same double back; "nan" for all NaNs.
std::string DoubleText(double value);

}  // namespace deja::digest

#endif  // DEJA_DIGEST_ELEMENTS_H_

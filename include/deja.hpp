// deja.hpp: deja.h for C++: registrations that end with the object that made them.
//
// Header-only, C++17. A Registered must not outlive what it names; it can be moved, not copied.
#ifndef DEJA_HPP_
#define DEJA_HPP_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <locale>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "deja.h"

namespace deja {

// The element type of a tensor of T.
template <typename T>
constexpr deja_dtype_t DTypeOf() {
  if constexpr (std::is_same_v<T, float>) return DEJA_FLOAT32;
  if constexpr (std::is_same_v<T, double>) return DEJA_FLOAT64;
  static_assert(std::is_integral_v<T> || std::is_floating_point_v<T>, "give the type by number");
  if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? DEJA_INT8 : DEJA_UINT8;
  if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? DEJA_INT32 : DEJA_UINT32;
  return std::is_signed_v<T> ? DEJA_INT64 : DEJA_UINT64;
}

// One registration; it ends when this is destroyed.
class Registered {
 public:
  Registered() = default;
  ~Registered() { End(); }
  Registered(Registered&& other) noexcept : name_(std::exchange(other.name_, {})) {}
  Registered& operator=(Registered&& other) noexcept {
    End();
    name_ = std::exchange(other.name_, {});
    return *this;
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  // A vector's elements. Its memory must not move any more: not for vectors that grow.
  template <typename T>
  static Registered Tensor(std::string name, std::vector<T>& values) {
    return Tensor(std::move(name), values.data(), {static_cast<std::int64_t>(values.size())});
  }
  template <typename T>
  static Registered Tensor(std::string name, T* data, std::initializer_list<std::int64_t> shape) {
    deja_register_tensor(name.c_str(), data, shape.begin(), static_cast<int>(shape.size()),
                         DTypeOf<T>());
    return Registered(std::move(name));
  }

  // An object that is its bytes, such as a counter or a generator that is a plain struct.
  template <typename T>
  static Registered State(std::string name, T& state) {
    static_assert(std::is_trivially_copyable_v<T>, "use Callbacks or Engine");
    deja_register_state(name.c_str(), &state, sizeof state);
    return Registered(std::move(name));
  }

  // A generator of <random>, or one that writes and reads its state with << and >> as they do.
  // (Generators of cuRAND need no registration: what they draw is recorded and served.)
  template <typename E>
  static Registered Engine(std::string name, E& engine) {
    deja_register_callbacks(
        name.c_str(),
        [](void* user, deja_write_t write, void* sink) {
          std::ostringstream out;
          out.imbue(std::locale::classic());
          out << *static_cast<const E*>(user);
          const std::string text = out.str();
          write(sink, text.data(), text.size());
        },
        [](void* user, const void* data, size_t bytes) {
          std::istringstream in(std::string(static_cast<const char*>(data), bytes));
          in.imbue(std::locale::classic());
          return in >> *static_cast<E*>(user) ? 0 : 1;
        },
        &engine);
    return Registered(std::move(name));
  }

  // An object that has `void Save(deja_write_t write, void* sink)` and
  // `bool Load(const void* data, size_t bytes)`.
  template <typename T>
  static Registered Object(std::string name, T& object) {
    deja_register_callbacks(
        name.c_str(),
        [](void* user, deja_write_t write, void* sink) {
          static_cast<T*>(user)->Save(write, sink);
        },
        [](void* user, const void* data, size_t bytes) {
          return static_cast<T*>(user)->Load(data, bytes) ? 0 : 1;
        },
        &object);
    return Registered(std::move(name));
  }

 private:
  explicit Registered(std::string name) : name_(std::move(name)) {}
  void End() {
    if (!name_.empty()) deja_unregister(name_.c_str());
    name_.clear();
  }

  std::string name_;
};

}  // namespace deja

#endif  // DEJA_HPP_

// Structs of options in the form in which callers pass them, and the callbacks in them.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "call.hpp"

namespace tessera::c {

// Calls a host's drop(user) once, when the last copy of a SharedDrop is destroyed.
class Drop {
 public:
  Drop() noexcept = default;
  Drop(void* user, void (*drop)(void*)) noexcept : user_(user), drop_(drop) {}
  Drop(Drop&& other) noexcept : user_(other.user_), drop_(std::exchange(other.drop_, nullptr)) {}
  Drop& operator=(Drop&&) = delete;
  ~Drop() {
    if (drop_ == nullptr) return;
    try {
      drop_(user_);
    } catch (...) {  // the exception has no receiver
    }
  }

 private:
  void* user_ = nullptr;
  void (*drop_)(void*) = nullptr;
};
using SharedDrop = std::shared_ptr<const Drop>;
// Makes `drop` shared. If memory is lacking, drop(user) is called at once, and the exception is passed on.
[[nodiscard]] inline SharedDrop share(Drop drop) { return std::make_shared<const Drop>(std::move(drop)); }

// The largest size that a struct may state. A larger size means that the caller did not initialise the struct.
inline constexpr std::size_t kLargestStruct = 64 * 1024;

// Copies a caller's struct of options. Fields that an older program's struct does not have become zeros. `first`: size
// of the struct in the first version of the library. Errors: invalid_argument, the size is below `first` or above
// kLargestStruct; unsupported, the struct is larger than this library's and its additional bytes are not all zero.
template <class T>
T read_struct(const T* given, std::string_view name, std::size_t first = sizeof(T)) {
  static_assert(std::is_trivial_v<T>);
  T own;
  std::memset(&own, 0, sizeof own);
  own.size = sizeof own;
  if (given == nullptr) return own;
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < first || size > kLargestStruct) {
    fail(ErrorCode::invalid_argument,
         "its size is " + std::to_string(size) + ", and a struct has at least " + std::to_string(first) +
             " bytes; call tessera_options_init()",
         name);
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof own; i < size; ++i) {
    if (bytes[i] != 0) {
      fail(ErrorCode::unsupported,
           "byte " + std::to_string(i) + " is set, and this library (API version " +
               std::to_string(TESSERA_API_VERSION) + ") knows " + std::to_string(sizeof own) +
               " bytes; use a newer library, or leave the newer options at zero",
           name);
    }
  }
  std::memcpy(&own, given, size < sizeof own ? size : sizeof own);
  own.size = sizeof own;
  return own;
}

}  // namespace tessera::c

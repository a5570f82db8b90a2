// Handles of the C ABI: objects that begin with a tag of their kind, so that NULL and handles of a wrong kind are
// recognised as errors.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <tessera.h>

namespace tessera::c {

enum class Kind : std::uint32_t {
  freed = 0,  // the tag of an object that is being destroyed
  error = 0x7e550001,
  text,
  tokens,
  stop,
  engine,
  detokenizer,
  session,
  outputs,
  sampler,
  grammar,
  generation,
  piece,
  conversation,
  answer,
  scheduler,
  request,
  adapter
};

// Returns the C name of a kind ("tessera_engine"), or "no handle of this library" for a number that is not a kind.
[[nodiscard]] std::string_view to_string(Kind kind) noexcept;

template <Kind K>
struct Tagged {
  static constexpr Kind kKind = K;
  volatile Kind kind = K;  // volatile: the tag of a freed handle is written although nobody may read it

  Tagged() noexcept = default;
  Tagged(const Tagged&) = delete;
  Tagged& operator=(const Tagged&) = delete;
  ~Tagged() { kind = Kind::freed; }
};

// Returns the handle; nullptr if the handle is NULL or of another kind.
template <class T>
[[nodiscard]] T* is_a(T* handle) noexcept {
  return handle != nullptr && handle->kind == std::remove_const_t<T>::kKind ? handle : nullptr;
}

// Destroys a handle. Does nothing for NULL and for a handle of another kind.
template <class T>
void free_handle(T* handle) noexcept {
  if (is_a(handle) != nullptr) delete handle;
}

}  // namespace tessera::c

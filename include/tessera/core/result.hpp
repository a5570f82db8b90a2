// Errors as values. Everything in tessera that can fail returns Result<T> (or Status, its void form): no exception
// crosses the API, and the type is the same in every language mode (-fno-exceptions, -fno-rtti, C++20, C++23).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace tessera {

// Values are fixed: they are part of the (future) C ABI.
enum class ErrorCode : std::int32_t {
  invalid_argument = 1,  // a value the caller passed: an option, a token id, a prompt
  invalid_state = 2,     // the call does not fit what the object is doing
  not_found = 3,         // a file, key or tensor that is not there
  unsupported = 4,       // well-formed, but something tessera does not do (yet)
  corrupt_file = 5,      // a file that contradicts its own format
  io = 6,                // the operating system or a ByteSource could not read or write
  out_of_memory = 7,     // an allocation failed
  over_budget = 8,       // the plan exceeds the caller's memory budget
  cache_full = 9,        // the KV cache has no room for more tokens
  cancelled = 10,        // a stop_token or a callback asked to stop
  callback_failed = 11,  // a callback of the caller's threw
  numeric = 12,          // logits that are NaN, or allow no token at all
  internal = 13,         // a defect of tessera's: please report it
  device_error = 14,     // a device (a GPU) failed at what it was asked to do
};

[[nodiscard]] std::string_view to_string(ErrorCode code) noexcept;

// What went wrong: a code for programs, a sentence for people that says what to do, and the place (a file offset, a
// key, a tensor, a position), which may be empty. Message and place are one line of UTF-8 each: what a file or a caller
// put into them that is not a printable character is a '?' there.
class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message, std::string place = {}) noexcept;

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] const std::string& place() const noexcept { return place_; }
  // "place: message", one line.
  [[nodiscard]] std::string text() const { return place_.empty() ? message_ : place_ + ": " + message_; }

 private:
  ErrorCode code_;
  std::string message_;
  std::string place_;
};

// A T or an Error. Reading the value of an error (or the error of a value) is a programming mistake, as with
// std::optional: test first.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) noexcept : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) noexcept : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  [[nodiscard]] T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  [[nodiscard]] const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  [[nodiscard]] T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  [[nodiscard]] T* operator->() noexcept { return std::get_if<0>(&state_); }
  [[nodiscard]] const T* operator->() const noexcept { return std::get_if<0>(&state_); }

  [[nodiscard]] Error& error() & noexcept { return *std::get_if<1>(&state_); }
  [[nodiscard]] const Error& error() const& noexcept { return *std::get_if<1>(&state_); }
  [[nodiscard]] Error&& error() && noexcept { return std::move(*std::get_if<1>(&state_)); }

  [[nodiscard]] T value_or(T fallback) && { return has_value() ? std::move(**this) : std::move(fallback); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() noexcept = default;
  Result(Error error) noexcept : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  [[nodiscard]] bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }
  [[nodiscard]] Error& error() & noexcept { return *error_; }
  [[nodiscard]] const Error& error() const& noexcept { return *error_; }
  [[nodiscard]] Error&& error() && noexcept { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace tessera

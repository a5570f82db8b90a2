// Errors as values. Everything in tessera that can fail returns Result<T> (or Status, its void form): no exception
// crosses the API, and the type is the same in every language mode (-fno-exceptions, -fno-rtti, C++20, C++23).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tessera {

// Values are fixed: they are part of the (future) C ABI.
enum class ErrorCode : std::int32_t {
  none = 0,              // no error: the code of an empty Error
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
  busy = 15,             // too much is waiting already: the sentence says when to try again
  too_late = 16,         // it could not end by its deadline
};

[[nodiscard]] std::string_view to_string(ErrorCode code) noexcept;

// What went wrong: a code for programs, a sentence for people that says what to do, and the place (a file offset, a
// key, a tensor, a position), which may be empty. Message and place are one line of UTF-8 each: what a file or a caller
// put into them that is not a printable character is a '?' there.
//
// An Error is two words. Copies share its texts, so that a copy never allocates and never fails; a moved-from Error
// stays what it was. A default-constructed Error is empty: code none, no texts.
class [[nodiscard]] Error {
 public:
  constexpr Error() noexcept = default;
  // If there is no memory for the texts, the code stays and the message is "out of memory".
  Error(ErrorCode code, std::string_view message, std::string_view place = {}) noexcept;
  Error(const Error&) noexcept = default;
  Error& operator=(const Error&) noexcept = default;

  [[nodiscard]] bool empty() const noexcept { return body_ == nullptr; }
  [[nodiscard]] ErrorCode code() const noexcept { return body_ != nullptr ? body_->code : ErrorCode::none; }
  [[nodiscard]] const std::string& message() const noexcept { return body_ != nullptr ? body_->message : no_text(); }
  [[nodiscard]] const std::string& place() const noexcept { return body_ != nullptr ? body_->place : no_text(); }
  // "place: message", one line. May throw std::bad_alloc, as it makes a string.
  [[nodiscard]] std::string text() const { return place().empty() ? message() : place() + ": " + message(); }

 private:
  struct Body {
    ErrorCode code = ErrorCode::none;
    std::string message = {};
    std::string place = {};
  };
  [[nodiscard]] static const std::string& no_text() noexcept;
  [[nodiscard]] static const Body& without_texts(ErrorCode code) noexcept;

  std::shared_ptr<const Body> body_;
};

namespace detail {
// Returns the error that a Result made of `error` holds: `error`, or ErrorCode::internal in the place of an empty one, so that a Result
// made of an Error is never a success.
[[nodiscard]] Error some_error(const Error& error) noexcept;
}  // namespace detail

// A T or an Error: test which first. Reading the other one is a mistake of the program, but a defined one in every
// build: the value of an error is T{}, and the error of a value is the empty Error. The T{} of a handle (a Session, a
// Grammar) is an empty handle, whose functions return invalid_state (docs/headers.md).
//
// A moved-from Result still says whether it was a value.
template <class T>
class [[nodiscard]] Result {
  static_assert(std::is_nothrow_default_constructible_v<T>,
                "a Result<T> needs a T{} that cannot throw: the value of an error");

 public:
  using value_type = T;

  Result(T value) noexcept : value_(std::move(value)) {}  // NOLINT: implicit on purpose
  Result(const Error& error) noexcept : error_(error.empty() ? detail::some_error(error) : error) {}  // NOLINT

  [[nodiscard]] bool has_value() const noexcept { return error_.empty(); }
  explicit operator bool() const noexcept { return has_value(); }

  // The value, three ways: *result, result->member, result.value().
  [[nodiscard]] T& operator*() & noexcept { return value_; }
  [[nodiscard]] const T& operator*() const& noexcept { return value_; }
  [[nodiscard]] T&& operator*() && noexcept { return std::move(value_); }
  [[nodiscard]] T* operator->() noexcept { return &value_; }
  [[nodiscard]] const T* operator->() const noexcept { return &value_; }
  [[nodiscard]] T& value() & noexcept { return value_; }
  [[nodiscard]] const T& value() const& noexcept { return value_; }
  [[nodiscard]] T&& value() && noexcept { return std::move(value_); }

  [[nodiscard]] const Error& error() const& noexcept { return error_; }
  [[nodiscard]] Error error() && noexcept { return error_; }

  [[nodiscard]] T value_or(T fallback) && { return has_value() ? std::move(value_) : std::move(fallback); }

 private:
  T value_{};
  Error error_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() noexcept = default;
  Result(const Error& error) noexcept
      : error_(error.empty() ? detail::some_error(error) : error) {}  // NOLINT: implicit on purpose

  [[nodiscard]] bool has_value() const noexcept { return error_.empty(); }
  explicit operator bool() const noexcept { return has_value(); }
  [[nodiscard]] const Error& error() const& noexcept { return error_; }
  [[nodiscard]] Error error() && noexcept { return error_; }

 private:
  Error error_;
};

using Status = Result<void>;

}  // namespace tessera

// Errors as values. Everything in tessera that can fail returns Result<T> (or Status, its void form): no exception
// crosses the API, and the type is the same in every language mode (-fno-exceptions, -fno-rtti, C++20, C++23).
#pragma once

#include <cstdint>
#ifndef NDEBUG
#include <cstdio>
#include <cstdlib>
#endif
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
  busy = 15,             // too much is waiting already: the sentence says when to try again
  too_late = 16,         // it could not end by its deadline
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

#ifndef NDEBUG
namespace detail {
// The end of a program that takes an error for a value. Only in what a host compiles for debugging; the library itself
// never tests by reading.
[[noreturn]] inline void misread(const char* mistake, const Error* error) noexcept {
  std::fprintf(stderr, "tessera: %s%s%s\n", mistake, error != nullptr ? ": " : "", error != nullptr ? error->text().c_str() : "");
  std::abort();
}
}  // namespace detail
#endif

// A T or an Error: test which first. Reading the value of an error (or the error of a value) is a mistake of the program,
// as with std::optional. What the host compiles without NDEBUG then says on stderr which error was not looked at, and
// aborts; what it compiles with NDEBUG checks nothing, and its behaviour is undefined. No input leads there by itself:
// only code that does not test.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) noexcept : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) noexcept : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // The value, three ways: *result, result->member, result.value().
  [[nodiscard, gnu::always_inline]] T& operator*() & noexcept { return *value_of(*this); }
  [[nodiscard, gnu::always_inline]] const T& operator*() const& noexcept { return *value_of(*this); }
  [[nodiscard, gnu::always_inline]] T&& operator*() && noexcept { return std::move(*value_of(*this)); }
  [[nodiscard, gnu::always_inline]] T* operator->() noexcept { return value_of(*this); }
  [[nodiscard, gnu::always_inline]] const T* operator->() const noexcept { return value_of(*this); }
  [[nodiscard, gnu::always_inline]] T& value() & noexcept { return *value_of(*this); }
  [[nodiscard, gnu::always_inline]] const T& value() const& noexcept { return *value_of(*this); }
  [[nodiscard, gnu::always_inline]] T&& value() && noexcept { return std::move(*value_of(*this)); }

  [[nodiscard, gnu::always_inline]] Error& error() & noexcept { return *error_of(*this); }
  [[nodiscard, gnu::always_inline]] const Error& error() const& noexcept { return *error_of(*this); }
  [[nodiscard, gnu::always_inline]] Error&& error() && noexcept { return std::move(*error_of(*this)); }

  [[nodiscard]] T value_or(T fallback) && { return has_value() ? std::move(**this) : std::move(fallback); }

 private:
  // Inlined always, so that a host's debug build and the library's own share no function.
  template <class Self>
  [[gnu::always_inline]] static auto* value_of(Self& self) noexcept {
#ifndef NDEBUG
    if (!self.has_value()) detail::misread("the value of a Result that is an error was read", std::get_if<1>(&self.state_));
#endif
    return std::get_if<0>(&self.state_);
  }
  template <class Self>
  [[gnu::always_inline]] static auto* error_of(Self& self) noexcept {
#ifndef NDEBUG
    if (self.has_value()) detail::misread("the error of a Result that is a value was read", nullptr);
#endif
    return std::get_if<1>(&self.state_);
  }

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
  [[nodiscard, gnu::always_inline]] Error& error() & noexcept { return test_error(), *error_; }
  [[nodiscard, gnu::always_inline]] const Error& error() const& noexcept { return test_error(), *error_; }
  [[nodiscard, gnu::always_inline]] Error&& error() && noexcept { return test_error(), std::move(*error_); }

 private:
  [[gnu::always_inline]] void test_error() const noexcept {
#ifndef NDEBUG
    if (has_value()) detail::misread("the error of a Status that is a success was read", nullptr);
#endif
  }

  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace tessera

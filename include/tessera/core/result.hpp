// Errors as values. A function that can fail returns a Result<T>, or a Status if it has no value to return. No exception leaves the
// library, and the types are the same in every language mode (-fno-exceptions, -fno-rtti, C++20, C++23).
//
//   auto engine = tessera::Engine::load(path);
//   if (!engine) {
//     std::fprintf(stderr, "%s\n", engine.error().text().c_str());
//     return 1;
//   }
//   auto session = engine->session();
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tessera {

// The numbers never change: they are part of the C ABI (tessera.h).
enum class ErrorCode : std::int32_t {
  none = 0,              // no error: the code of an empty Error
  invalid_argument = 1,  // a value that the caller passed: an option, a token id, a prompt
  invalid_state = 2,     // the call does not fit what the object is doing
  not_found = 3,         // a file, key or tensor that is not there
  unsupported = 4,       // well-formed, but something tessera does not do (yet)
  corrupt_file = 5,      // a file that contradicts its own format
  io = 6,                // the operating system or a ByteSource could not read or write
  out_of_memory = 7,     // an allocation failed
  over_budget = 8,       // the plan exceeds the caller's memory budget
  cache_full = 9,        // the KV cache has no room for more tokens
  cancelled = 10,        // a stop_token or a callback asked to stop
  callback_failed = 11,  // a callback of the caller threw an exception
  numeric = 12,          // logits that are NaN, or allow no token at all
  internal = 13,         // a defect of tessera: please report it
  device_error = 14,     // a device (a GPU) failed
  busy = 15,             // too many requests are waiting: the message says when to try again
  too_late = 16,         // a request could not end by its deadline
};

[[nodiscard]] std::string_view to_string(ErrorCode code) noexcept;

// An error: a code for programs, a message for people that also says what to do, and the place of the fault (a file offset, a key, a
// tensor, a position). The place may be empty. Message and place are one line of UTF-8 each; unprintable characters from a file or a caller
// become '?'.
//
// An Error has the size of a std::shared_ptr (two pointers). Copies share the texts, so copying never allocates and never fails. A
// moved-from Error still has its code and texts. A default-constructed Error is empty: its code is `none`, and it has no texts.
class [[nodiscard]] Error {
 public:
  constexpr Error() noexcept = default;
  // If there is no memory for the texts, the Error keeps its code, and its message is "out of memory".
  Error(ErrorCode code, std::string_view message, std::string_view place = {}) noexcept;
  Error(const Error&) noexcept = default;
  Error& operator=(const Error&) noexcept = default;

  [[nodiscard]] bool empty() const noexcept { return body_ == nullptr; }
  [[nodiscard]] ErrorCode code() const noexcept { return body_ != nullptr ? body_->code : ErrorCode::none; }
  [[nodiscard]] const std::string& message() const noexcept { return body_ != nullptr ? body_->message : no_text(); }
  [[nodiscard]] const std::string& place() const noexcept { return body_ != nullptr ? body_->place : no_text(); }
  // Returns "place: message", one line. May throw std::bad_alloc.
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
// Returns `error`; if `error` is empty, an error of code `internal` instead. Result's constructor uses this, because a Result with an empty
// Error would look like a success.
[[nodiscard]] Error some_error(const Error& error) noexcept;
}  // namespace detail

// A value or an Error. Ask has_value() before you read either of them. Reading the wrong one is a mistake of the program, but defined: the
// value of a failed Result is T{}, and the error of a successful Result is the empty Error. If T is a handle (a Session, a Grammar), T{} is
// an empty handle, whose functions return invalid_state (docs/headers.md).
//
// Moving the value out of a Result does not change has_value().
//
//   auto half = [](int n) -> Result<int> {
//     if (n % 2 != 0) return Error(ErrorCode::invalid_argument, "n is odd: give an even number");
//     return n / 2;
//   };
//   if (auto value = half(8)) std::printf("%d\n", *value);
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

  // Return the value, in three notations: *result, result->member, result.value().
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

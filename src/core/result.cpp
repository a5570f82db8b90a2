#include <tessera/core/result.hpp>

#include <cstddef>
#include <iterator>
#include <new>

#include "core/printable.hpp"

namespace tessera {

Error::Error(ErrorCode code, std::string_view message, std::string_view place) noexcept {
  try {
    const auto body = std::make_shared<Body>(Body{code, std::string(message), std::string(place)});
    detail::make_printable(body->message);
    detail::make_printable(body->place);
    body_ = body;
  } catch (...) {
    body_ = std::shared_ptr<const Body>(std::shared_ptr<const Body>(),
                                        &without_texts(code));  // without an owner, so nothing is allocated
  }
}

// The statics below are made at their first use, without an allocation: their texts fit into std::string's inline buffer. They are never
// destroyed, because an Error may be used until the process ends.
const std::string& Error::no_text() noexcept {
  alignas(std::string) static std::byte storage[sizeof(std::string)];
  static const std::string* const text = new (storage) std::string();
  return *text;
}

const Error::Body& Error::without_texts(ErrorCode code) noexcept {
  struct Bodies {
    Body of[static_cast<std::size_t>(ErrorCode::too_late) + 1];
  };
  alignas(Bodies) static std::byte storage[sizeof(Bodies)];
  static const Bodies* const bodies = [] {
    auto* made = new (storage) Bodies();
    for (std::size_t i = 0; i < std::size(made->of); ++i) {
      made->of[i].code = static_cast<ErrorCode>(i);
      made->of[i].message = "out of memory";
    }
    return made;
  }();
  const auto i = static_cast<std::size_t>(code);
  return bodies->of[i < std::size(bodies->of) ? i : static_cast<std::size_t>(ErrorCode::internal)];
}

namespace detail {

Error some_error(const Error& error) noexcept {
  return error.empty() ? Error(ErrorCode::internal,
                               "an empty Error was returned as an error: return the error of a Result that failed")
                       : error;
}

}  // namespace detail

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::none:
      return "no error";
    case ErrorCode::invalid_argument:
      return "invalid argument";
    case ErrorCode::invalid_state:
      return "invalid state";
    case ErrorCode::not_found:
      return "not found";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::corrupt_file:
      return "corrupt file";
    case ErrorCode::io:
      return "input/output error";
    case ErrorCode::out_of_memory:
      return "out of memory";
    case ErrorCode::over_budget:
      return "over budget";
    case ErrorCode::cache_full:
      return "cache full";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::callback_failed:
      return "callback failed";
    case ErrorCode::numeric:
      return "numeric error";
    case ErrorCode::internal:
      return "internal error";
    case ErrorCode::device_error:
      return "device error";
    case ErrorCode::busy:
      return "busy";
    case ErrorCode::too_late:
      return "too late";
  }
  return "unknown error";
}

}  // namespace tessera

#include <tessera/core/result.hpp>

#include "support/printable.hpp"

namespace tessera {

Error::Error(ErrorCode code, std::string message, std::string place) noexcept
    : code_(code), message_(std::move(message)), place_(std::move(place)) {
  detail::make_printable(message_);
  detail::make_printable(place_);
}

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid argument";
    case ErrorCode::invalid_state: return "invalid state";
    case ErrorCode::not_found: return "not found";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::corrupt_file: return "corrupt file";
    case ErrorCode::io: return "input/output error";
    case ErrorCode::out_of_memory: return "out of memory";
    case ErrorCode::over_budget: return "over budget";
    case ErrorCode::cache_full: return "cache full";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::callback_failed: return "callback failed";
    case ErrorCode::numeric: return "numeric error";
    case ErrorCode::internal: return "internal error";
    case ErrorCode::device_error: return "device error";
    case ErrorCode::busy: return "busy";
    case ErrorCode::too_late: return "too late";
  }
  return "unknown error";
}

}  // namespace tessera

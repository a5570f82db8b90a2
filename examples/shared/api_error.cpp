#include "api_error.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "json_object.hpp"

namespace server {

using tessera::ErrorCode;
using tessera::Json;

namespace {

std::string_view openai_type(unsigned status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 429: return "rate_limit_error";
    default: return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

std::string_view anthropic_type(unsigned status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503: return "overloaded_error";
    default: return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

ApiError api_error(const tessera::Error& error, std::string param) {
  switch (error.code()) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unsupported:
    case ErrorCode::over_budget: return {400, error.text(), std::move(param)};
    case ErrorCode::cache_full: return {400, error.text(), std::move(param), "context_length_exceeded"};
    case ErrorCode::busy: {
      ApiError busy(429, error.text(), {}, "queue_full");
      busy.retry_after = 1.0;
      return busy;
    }
    case ErrorCode::too_late: return {429, error.text(), "deadline_ms", "deadline_cannot_be_met"};
    case ErrorCode::invalid_state:
    case ErrorCode::cancelled: return {503, "The server is shutting down.", {}, "shutting_down"};
    case ErrorCode::numeric:
      // The library has one error code for three faults. NaN logits are the model's fault: status 500. If the vocabulary has no token for
      // the text that a constraint demands, or if biases leave no token, that is the request's fault: status 400.
      if (error.message().find("no token of the vocabulary") != std::string::npos) {
        return {400, "The answer cannot go on in the form that the request states: this model's vocabulary has no token for the characters that must come next. Change the pattern, grammar or schema."};
      }
      if (error.message().find("left no token") == std::string::npos) return {500, error.text()};
      return {400, "No token is left to draw: logit_bias bans all that the answer may have here. Loosen it, or the form of the answer.", "logit_bias"};
    default: return {500, error.text()};
  }
}

ApiKind api_at(std::string_view path) noexcept {
  if (path.starts_with("/api/")) return ApiKind::ollama;
  constexpr std::string_view kMessages = "/v1/messages";
  return path == kMessages || (path.starts_with(kMessages) && path[kMessages.size()] == '/') ? ApiKind::anthropic : ApiKind::openai;
}

Json to_json(const ApiError& error, ApiKind kind) {
  Object inner;
  const std::string where = error.param.empty() ? "" : error.param + ": ";
  if (kind == ApiKind::ollama) return Object().set("error", where + error.what());
  if (kind == ApiKind::anthropic) {
    inner.set("type", anthropic_type(error.status)).set("message", where + error.what());
    return Object().set("type", "error").set("error", std::move(inner));
  }
  inner.set("message", error.what()).set("type", openai_type(error.status));
  inner.set("param", text_or_null(error.param)).set("code", text_or_null(error.code));
  return Object().set("error", std::move(inner));
}

HttpResponse to_response(const ApiError& error, ApiKind kind) {
  HttpResponse response{.status = error.status, .body = to_json(error, kind).dump()};
  if (error.retry_after > 0.0) {
    response.headers.emplace_back("Retry-After", fmt::format("{}", static_cast<int>(std::clamp(std::ceil(error.retry_after), 1.0, 3600.0))));
  }
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

HttpResponse refusal(std::string_view path, unsigned status, const std::string& message) {
  return to_response(ApiError(status, message), api_at(path));
}

}  // namespace server

// The mistake of a client, or the reason why it must wait: an HTTP status, and the error as OpenAI's API, Anthropic's or Ollama's writes it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/core/result.hpp>
#include <tessera/json/json.hpp>

#include "http.hpp"

namespace server {

struct ApiError : std::runtime_error {
  ApiError(unsigned status_, const std::string& message, std::string param_ = {}, std::string code_ = {})
      : std::runtime_error(message), status(status_), param(std::move(param_)), code(std::move(code_)) {}

  unsigned status;
  std::string param;         // the field
  std::string code;          // "context_length_exceeded"
  double retry_after = 0.0;  // seconds; 0: nothing is said
};

// What the library refused or failed at. Of a mistake in a field, which it is.
[[nodiscard]] ApiError api_error(const tessera::Error& error, std::string param = {});

template <class T>
[[nodiscard]] T value_or_refuse(tessera::Result<T> result, std::string param = {}) {
  if (!result) throw api_error(result.error(), std::move(param));
  return std::move(*result);
}
inline void value_or_refuse(const tessera::Status& status, std::string param = {}) {
  if (!status) throw api_error(status.error(), std::move(param));
}

// Whose way of writing errors.
enum class ApiKind { openai, anthropic, ollama };
[[nodiscard]] ApiKind api_at(std::string_view path) noexcept;

[[nodiscard]] tessera::Json to_json(const ApiError& error, ApiKind kind);
[[nodiscard]] HttpResponse to_response(const ApiError& error, ApiKind kind);
// An HttpRefusal: also what never becomes a request of an API is refused as that API's clients read it.
[[nodiscard]] HttpResponse refusal(std::string_view path, unsigned status, const std::string& message);

}  // namespace server

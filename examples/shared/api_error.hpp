// An error for a client: an HTTP status, and the error in the form of OpenAI's, Anthropic's or Ollama's API.
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
  std::string param;         // name of the field
  std::string code;          // "context_length_exceeded"
  double retry_after = 0.0;  // seconds until the client may try again; 0: not said
};

// Makes an ApiError of an error of the library. `param`: the field with the mistake, if the error is about a field.
[[nodiscard]] ApiError api_error(const tessera::Error& error, std::string param = {});

template <class T>
[[nodiscard]] T value_or_refuse(tessera::Result<T> result, std::string param = {}) {
  if (!result) throw api_error(result.error(), std::move(param));
  return std::move(*result);
}
inline void value_or_refuse(const tessera::Status& status, std::string param = {}) {
  if (!status) throw api_error(status.error(), std::move(param));
}

// The API in whose form errors are written.
enum class ApiKind { openai, anthropic, ollama };
[[nodiscard]] ApiKind api_at(std::string_view path) noexcept;

[[nodiscard]] tessera::Json to_json(const ApiError& error, ApiKind kind);
[[nodiscard]] HttpResponse to_response(const ApiError& error, ApiKind kind);
// An HttpRefusal: returns the answer to a request that no handler answers, in the form of the path's API.
[[nodiscard]] HttpResponse refusal(std::string_view path, unsigned status, const std::string& message);

}  // namespace server

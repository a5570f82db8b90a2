// The error for a token that a model does not have.
#pragma once

#include <tessera/core/token.hpp>

#include "core/error.hpp"

namespace tessera::detail {

// Checks that `token` is one of 0 .. vocab - 1.
inline Status check_token(Token token, std::size_t vocab) noexcept {
  if (token >= 0 && static_cast<std::size_t>(token) < vocab) return {};
  return make_error(ErrorCode::invalid_argument, "token {} is not in the vocabulary, whose tokens are 0 to {}", token, vocab - 1);
}

}  // namespace tessera::detail

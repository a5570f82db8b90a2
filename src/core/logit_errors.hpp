// The errors for logits from which no token can be drawn. Samplers and backends return the same errors.
#pragma once

#include <cstdint>

#include "core/error.hpp"

namespace tessera::detail {

inline Error nan_logit_error(std::uint64_t token) noexcept {
  return make_error(ErrorCode::numeric, "the logit of token {} is NaN", token);
}

inline Error no_logit_error() noexcept {
  return make_error(ErrorCode::numeric, "every logit is -inf: no token can be drawn");
}

}  // namespace tessera::detail

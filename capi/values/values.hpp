// Handles that hold plain values: texts, tokens, stops.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "call.hpp"

struct tessera_text : tessera::c::Tagged<tessera::c::Kind::text> {
  explicit tessera_text(std::string of) noexcept : text(std::move(of)) {}
  std::string text;
};

struct tessera_tokens : tessera::c::Tagged<tessera::c::Kind::tokens> {
  explicit tessera_tokens(std::vector<std::int32_t> of) noexcept : tokens(std::move(of)) {}
  std::vector<std::int32_t> tokens;
};

struct tessera_stop : tessera::c::Tagged<tessera::c::Kind::stop> {
  std::stop_source source;
};

namespace tessera::c {

// Returns the token of a stop; an empty token for NULL.
[[nodiscard]] std::stop_token token_of(const tessera_stop* stop);

}  // namespace tessera::c

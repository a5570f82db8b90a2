// A piece of the text of a generation, of a request's sample, or of an answer.
#pragma once

#include <string>
#include <utility>

#include <tessera/extend/chat/output_parser.hpp>
#include <tessera/generation.hpp>

#include "call.hpp"

struct tessera_piece : tessera::c::Tagged<tessera::c::Kind::piece> {
  tessera::Piece piece;
  std::uint32_t sample = 0;
  tessera::OutputDelta delta;  // set only for answers; its text is in piece.text

  const tessera_piece* set(tessera::Piece of, std::uint32_t with = 0) noexcept {
    piece = std::move(of);
    sample = with;
    return this;
  }
  const tessera_piece* set(tessera::OutputDelta of) noexcept {
    piece = {};
    piece.text = std::move(of.text);
    delta = std::move(of);
    return this;
  }
};

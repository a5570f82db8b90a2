// The handle of results: outputs of sessions' rows, or embeddings of texts.
#pragma once

#include <cstddef>
#include <utility>
#include <variant>

#include <tessera/batch.hpp>
#include <tessera/embedding.hpp>

#include "handle.hpp"

struct tessera_outputs : tessera::c::Tagged<tessera::c::Kind::outputs> {
  tessera_outputs(tessera::Outputs of, std::size_t n) noexcept : results(std::move(of)), rows(n) {}
  explicit tessera_outputs(tessera::Embeddings of) noexcept : rows(of.size()) { results = std::move(of); }

  std::variant<tessera::Outputs, tessera::Embeddings> results;
  std::size_t rows;
};

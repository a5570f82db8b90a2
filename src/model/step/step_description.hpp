// A step as a plain value: numbers, without addresses, sessions or objects of a backend. So a step can also be computed in another
// process. To execute a description (StepExecutor), a process needs the model's weights, the pages and a backend. If it is not the
// engine's own process, it must have executed all earlier descriptions of the engine, which have filled the pages.
//
// Exception: descriptions do not tell the contents of pages that no step has computed. These are pages that were read from a file (a
// resumed session, a prefix found in the file), pages of restored snapshots, and pages of caches that were cloned or converted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <tessera/core/token.hpp>
#include <tessera/extend/core/hash.hpp>

#include "backend/sample_row.hpp"
#include "kv/step_pages.hpp"

namespace tessera::backend {

[[nodiscard]] inline bool operator==(const SampleRow& a, const SampleRow& b) noexcept {
  const auto same = [](const SampleStep& one, const SampleStep& other) {
    return one.kind == other.kind && one.value == other.value && one.count == other.count;
  };
  return a.row == b.row && a.uniform == b.uniform &&
         std::equal(a.steps.list, a.steps.list + a.steps.size, b.steps.list, b.steps.list + b.steps.size, same);
}

}  // namespace tessera::backend

namespace tessera::detail {

// The output that a row wants.
enum class RowOutput : std::uint8_t { nothing, logits, hidden, token, embedding, scores };

inline constexpr std::uint32_t kNoEmbedding = ~std::uint32_t{0};

// An adapter and its scale. The executor of the step finds the adapter's weights by the adapter's content.
struct DescribedAdapter {
  Hash128 content;
  float scale = 1.0f;

  bool operator==(const DescribedAdapter&) const noexcept = default;
};

struct DescribedRow {
  Token token = 0;                         // in a row with an embedding: the token for Backend::gather(); 0: none
  std::uint32_t embedding = kNoEmbedding;  // index into StepInputs::embeddings, for a row that has a vector instead of a token
  std::uint32_t sequence = 0;              // index into StepDescription::pages
  std::uint32_t branches = 0;              // number of sequences after `sequence` that also get the row's key and value (RowTable::n_also)
  std::uint64_t position = 0;
  std::uint32_t segment = 0;               // the row's segment, in models that have segments
  std::uint32_t first_adapter = 0, n_adapters = 0;  // the row's adapters, a range of StepDescription::adapters
  RowOutput output = RowOutput::nothing;
  bool votes = false;                      // true: the row's attention is added to votes (OutputSink::votes())

  bool operator==(const DescribedRow&) const noexcept = default;
};

struct StepDescription {
  std::vector<PageCopy> copies;           // copies to repeat before the step, in this order; empty if the pools keep no list (keep_copies())
  StepPages pages;                        // the pages of the step's sequences
  std::vector<DescribedRow> rows;
  std::vector<DescribedAdapter> adapters;  // adapters of the step's sequences, sequence by sequence
  std::vector<backend::SampleRow> draws;  // draws of the rows whose output is a token, ascending; SampleRow::row is the index in `rows`
  std::uint32_t first_layer = 0;          // layers [first_layer, last_layer)
  std::uint32_t last_layer = 0;
  std::uint64_t guess = 0;  // StepExecutor::guess(): number of guesses before this one, since the model's last step

  void clear() noexcept {
    copies.clear();
    pages.clear();
    rows.clear();
    adapters.clear();
    draws.clear();
    first_layer = last_layer = 0;
    guess = 0;
  }
  bool operator==(const StepDescription&) const noexcept = default;
};

// Tokens of a sequence that move to lower positions (backend::KvMove).
struct MoveDescription {
  std::vector<PageCopy> copies;  // copies to make before the move, in this order (as StepDescription::copies)
  StepPages pages;               // one sequence
  std::uint64_t from = 0, to = 0, count = 0;
  std::vector<std::uint64_t> first;  // [group]: tokens before this position stay in place; empty: all tokens move

  bool operator==(const MoveDescription&) const noexcept = default;
};

}  // namespace tessera::detail

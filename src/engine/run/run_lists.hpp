// The working lists of a run: the rows of its sessions, and the description of one step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include <tessera/session.hpp>

#include "engine/run/draw.hpp"
#include "engine/run/logits_buffer.hpp"
#include "engine/run/recycled.hpp"
#include "model/forward.hpp"

namespace tessera::detail {

struct RunRow {
  Token token = 0;
  RowOutput output = RowOutput::nothing;
  bool votes = false;                // the row votes for a token budget; set by Run::prepare()
  // Number of branches that also see this row, so that its key and value are written to their pages too. The branches are the first
  // `also` parts after the row's part.
  std::uint32_t also = 0;
  std::uint32_t segment = 0;
  const float* embedding = nullptr;  // [d_model], used instead of the token's embedding
  float* to = nullptr;               // [output_size()]: place for the logits, the vector or the scores
  Draw* draw = nullptr;              // set if a token is drawn after the row
};

// A session's part of a run: consecutive rows. Example: a session has 10 tokens, of which the last is pending, and gets 3 more. Then begin
// is 9, rows 4, and tokens 10.
struct Part {
  enum class Phase : std::uint8_t {
    added,     // rows were added
    prepared,  // the rows' tokens are pending in the session, and pages are reserved for them
    computed,  // keys and values are written, outputs are handed out
    closed,    // the rows are committed, or undone so that the session is as it was
  };

  Session::State* session = nullptr;
  std::size_t first = 0, rows = 0;  // index of the first row in RunLists::rows, and number of rows
  std::size_t drafts = 0;           // number of rows at the part's end that are drafts, which commit() may leave out
  std::uint64_t ahead = 0;          // positions after the session's length that drafts of an earlier run have filled
  std::uint64_t begin = 0;          // position of the first row
  std::size_t tokens = 0;           // tokens of the session before the run, including pending tokens
  std::uint64_t adopted = 0;        // number of rows at the part's beginning whose pages came from the prefix index
  std::uint64_t to_come = 0;        // tokens of the same prompt that follow in later runs
  // Branches only: the fork of the session's cache that has pages for the branch's rows. nullptr: the part is not a branch. A run never
  // commits a branch: the fork's owner keeps or drops it.
  const KvCache* branch = nullptr;
  std::size_t branches = 0;         // number of parts directly after this one that are its branches
  std::stop_token stop = {};
  Phase phase = Phase::added;
  Status outcome = {};              // if this is an error, the part is closed, and the session is as it was
};

// A row of a step.
struct StepRow {
  std::size_t row;   // index in RunLists::rows
  std::size_t part;
};

// Number of page numbers for which the lists keep memory: the pages of 64 sequences of 16,384 tokens.
inline constexpr std::size_t kKeptIds = 65536;

struct RunLists {
  std::vector<RunRow> rows;
  std::vector<Part> parts;
  // The fields of one step.
  std::vector<StepRow> step;  // the rows of `description`
  StepDescription description;
  std::vector<const float*> embeddings;  // StepInputs::embeddings
  std::vector<const backend::AdapterWeights*> adapters;  // StepInputs::adapters
  std::size_t voters = 0;     // rows of the step that vote
  HostDraws draws;

  void clear_step() noexcept {
    step.clear();
    description.clear();
    embeddings.clear();
    adapters.clear();
    voters = 0;
  }
  void clear() noexcept {
    clear_list(rows);
    clear_list(parts);
    draws.clear();
    clear_step();  // keeps the memory of the step's lists, because they never have more elements than a step has rows
    clear_list(description.pages.ids, kKeptIds);
  }
};

}  // namespace tessera::detail

// What a run is worked on with: the rows of its sessions, and one step's rows in the backend's terms.
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
  bool votes = false;                // Run::prepare() says so
  std::uint32_t also = 0;            // branches behind the row's part whose pages get its key and value too
  const float* embedding = nullptr;  // [d_model], instead of the token
  float* to = nullptr;               // [vocab] or [d_model]: where the logits or the hidden state go
  Draw* draw = nullptr;              // of a row that wants a token
};

// A session's part of a run: rows that follow each other. Example: a session of 10 tokens, the last of them pending,
// gets 3 more. Then begin is 9, rows 4, and tokens 10.
struct Part {
  enum class Phase : std::uint8_t {
    added,     // it has rows
    prepared,  // its tokens stand in the session, pending; pages are reserved for them
    computed,  // keys and values are written, outputs are where they belong
    closed,    // committed, or undone: the session is as it was
  };

  Session::State* session = nullptr;
  std::size_t first = 0, rows = 0;  // of the run's rows
  std::size_t drafts = 0;           // of these, the last ones: any number of them may be committed
  std::uint64_t ahead = 0;          // drafts: positions behind the session's length that an earlier run has filled
  std::uint64_t begin = 0;          // the position of its first row
  std::size_t tokens = 0;           // of the session before, pending ones too
  std::uint64_t adopted = 0;        // of its first rows: tokens whose pages the prefix index had
  std::uint64_t to_come = 0;        // tokens of the same prompt that later runs have
  // Of a branch: a fork of the session's cache, which has pages for its rows. Nothing is committed of them: who made the
  // fork takes it, or leaves it.
  const KvCache* branch = nullptr;
  std::size_t branches = 0;         // parts right behind this one that are branches of the same session
  std::stop_token stop = {};
  Phase phase = Phase::added;
  Status outcome = {};              // an error: it is closed, and the session is as it was
};

// A row of a step.
struct StepRow {
  std::size_t row;   // of the run
  std::size_t part;
};

struct RunLists {
  std::vector<RunRow> rows;
  std::vector<Part> parts;
  // One step's rows.
  std::vector<StepRow> step;
  std::vector<backend::RowTable> tables;
  std::vector<RowOutput> outputs;
  std::vector<std::uint32_t> wanted;    // rows with an output, or all: Step::wanted
  std::vector<std::uint32_t> selected;  // Step::selected
  std::vector<KvView> views;          // of the step's sessions
  std::vector<backend::RowVotes> votes;
  HostDraws draws;

  void clear_step() noexcept {
    step.clear();
    tables.clear();
    outputs.clear();
    wanted.clear();
    selected.clear();
    views.clear();
    votes.clear();
  }
  void clear() noexcept {
    clear_list(rows);
    clear_list(parts);
    draws.clear();
    clear_step();  // never more than a step's rows
  }
};

}  // namespace tessera::detail

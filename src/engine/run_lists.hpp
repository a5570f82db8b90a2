// What a batch of rows is worked on with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <tessera/session.hpp>

#include "engine/recycled.hpp"
#include "model/forward.hpp"

namespace tessera::detail {

struct RunRow {
  Session::State* session;
  Token token;
  const float* embedding;  // instead of the token, or nullptr
  RowOutput output;
  bool is_pending;  // the token stands in the session's tokens already
};

struct RunRows {
  std::vector<RunRow> list;
  void clear() noexcept { clear_list(list); }
};

// A row that is computed: not every one is, where the prefix index has the beginning.
struct ScheduledRow {
  std::size_t row;  // index into the batch
  std::uint64_t position;
};

// A session's part of a batch.
struct Sequence {
  Session::State* session;
  std::uint64_t begin;         // its length before
  std::uint64_t end;           // its length when all rows are in
  std::size_t new_tokens = 0;  // rows that are not its pending tokens
  std::uint64_t adopted = 0;   // of its first rows: tokens whose pages the prefix index had
  std::uint64_t next = 0;      // the position of its next row, while rows are scheduled
};

struct RunLists {
  std::vector<Sequence> sequences;
  std::vector<Token> prefix;            // what the prefix index is asked for
  std::vector<ScheduledRow> scheduled;
  // One step's rows in the backend's terms.
  std::vector<backend::RowTable> tables;
  std::vector<RowOutput> outputs;
  std::vector<std::uint32_t> wanted;     // rows with an output
  std::vector<KvView> views;
  std::vector<Session::State*> members;  // the sessions of `views`

  void clear_step() noexcept {
    tables.clear();
    outputs.clear();
    wanted.clear();
    views.clear();
    members.clear();
  }
  void clear() noexcept {
    clear_list(sequences);
    clear_list(prefix);
    clear_list(scheduled);
    clear_step();  // never more than a step's rows
  }
};

}  // namespace tessera::detail

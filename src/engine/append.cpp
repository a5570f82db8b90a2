#include "engine/append.hpp"

#include <algorithm>
#include <utility>

#include "engine/edit.hpp"
#include "support/error.hpp"
#include "support/fp_state.hpp"

namespace tessera::detail {

namespace {

// Logits one after another into a buffer.
class PackedSink final : public OutputSink {
 public:
  PackedSink(std::span<float> values, std::size_t vocab) noexcept : values_(values), vocab_(vocab) {}
  std::span<float> destination(std::size_t) override { return values_.subspan(used_, vocab_); }
  void done(std::size_t) override { used_ += vocab_; }

 private:
  std::span<float> values_;
  std::size_t vocab_;
  std::size_t used_ = 0;
};

// Marks the rows whose logits are wanted; how many there are.
Result<std::size_t> mark_wanted(std::span<RunRow> rows, std::size_t first, const AppendOptions& options) {
  const std::size_t n_tokens = rows.size() - first;
  if (!options.rows.empty()) {
    std::size_t next = 0;
    for (const std::size_t row : options.rows) {
      if (row >= n_tokens || row < next) {
        return make_error(ErrorCode::invalid_argument, "logits of row {}: rows ascend and end before {}", row, n_tokens);
      }
      rows[first + row].output = RowOutput::logits;
      next = row + 1;
    }
    return options.rows.size();
  }
  if (options.logits == LogitsOf::none) return std::size_t{0};
  if (options.logits != LogitsOf::last && options.logits != LogitsOf::all) {
    return make_error(ErrorCode::invalid_argument, "logits of kind {}; choose last, all or none", static_cast<int>(options.logits));
  }
  // With no tokens but the pending one, `all` means that one.
  const std::size_t from = options.logits == LogitsOf::last || n_tokens == 0 ? rows.size() - 1 : first;
  for (RunRow& row : rows.subspan(from)) row.output = RowOutput::logits;
  return rows.size() - from;
}

}  // namespace

std::size_t make_rows(Session::State& session, std::span<const Token> tokens, std::vector<RunRow>& rows) {
  rows.reserve(tokens.size() + session.pending().size());
  for (const Token token : session.pending()) rows.push_back({&session, token, nullptr, RowOutput::nothing, true});
  const std::size_t first = rows.size();
  for (const Token token : tokens) rows.push_back({&session, token, nullptr, RowOutput::nothing, false});
  return first;
}

Result<Logits> append(Session::State& session, std::span<const Token> tokens, const AppendOptions& options, bool cuts) {
  const FpState fp_state;
  Recycled<RunRows>::Lease lease(session.shared->run_rows);
  std::vector<RunRow>& rows = lease->list;
  const std::size_t first = make_rows(session, tokens, rows);
  if (rows.empty()) return make_error(ErrorCode::invalid_argument, "there are no tokens to append");
  TESSERA_TRY(const std::size_t wanted, mark_wanted(rows, first, options));
  const std::size_t vocab = session.vocab();
  const std::uint64_t end = length_after_cut(session) + rows.size();
  if (end > session.kv.capacity()) return session.kv.reserve(end).error();  // before memory for logits is asked for
  TESSERA_TRY_STATUS(session.next_logits.ensure(*session.shared->options.memory, wanted, vocab));

  PackedSink sink(session.next_logits.values(), vocab);
  RunOptions run = all_layers(*session.shared, options.stop);
  run.progress = options.progress;
  run.cuts = cuts;
  if (Status status = guard([&] { return run_batch(*session.shared, rows, run, sink); }); !status) {
    session.next_logits.drop_excess(vocab);
    return std::move(status).error();
  }
  std::swap(session.logits, session.next_logits);
  session.logits_rows = wanted;
  session.has_last = rows.back().output == RowOutput::logits;
  return Logits{.values = session.logits.values().first(wanted * vocab), .vocab = vocab};
}

}  // namespace tessera::detail

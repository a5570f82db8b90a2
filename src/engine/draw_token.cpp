#include "engine/draw_token.hpp"

#include "engine/append.hpp"
#include "support/error.hpp"

namespace tessera::detail {

namespace {

// Of one row, the last.
class TokenSink final : public OutputSink {
 public:
  explicit TokenSink(const backend::SampleRow& draw) noexcept : draw_(draw) {}
  std::span<float> destination(std::size_t) override { return {}; }
  void done(std::size_t) override {}
  backend::SampleRow draw(std::size_t) override { return draw_; }
  void drawn(std::size_t, Token token) override { token_ = token; }

  [[nodiscard]] Token token() const noexcept { return token_; }

 private:
  backend::SampleRow draw_;
  Token token_ = -1;
};

}  // namespace

bool draws_on_backend(const Session::State& session) noexcept {
  const bool will_be_cut = session.stream.window != 0 && session.tokens.size() >= session.kv.capacity();
  return session.shared->backend->samples() && session.has_pending() && !will_be_cut;
}

Result<Token> draw_token(Session::State& session, const sampling::Recipe& recipe, const std::stop_token& stop) {
  Recycled<RunRows>::Lease lease(session.shared->run_rows);
  std::vector<RunRow>& rows = lease->list;
  (void)make_rows(session, {}, rows);
  rows.back().output = RowOutput::token;
  TokenSink sink({.row = 0, .steps = recipe.steps, .uniform = recipe.uniform(session.stream_position())});
  RunOptions run = all_layers(*session.shared, stop);
  run.cuts = false;
  TESSERA_TRY_STATUS(run_batch(*session.shared, rows, run, sink));
  session.has_last = false;
  const Token token = sink.token();
  if (token < 0 || static_cast<std::size_t>(token) >= session.vocab()) {
    return make_error(ErrorCode::internal, "backend {} drew token {} of a vocabulary of {}",
                      session.shared->backend->name(), token, session.vocab());
  }
  return token;
}

}  // namespace tessera::detail

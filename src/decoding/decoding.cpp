#include "decoding/decoding.hpp"

#include <algorithm>
#include <utility>

#include "engine/edit.hpp"
#include "engine/streams.hpp"
#include "support/error.hpp"

namespace tessera::detail {

namespace {

constexpr std::size_t kTokensAtOnce = 4096;  // room made for tokens at the beginning

}  // namespace

Decoding::Decoding(Session::State& session, Sampler& sampler, const GenerateOptions& options, std::vector<Token> prompt)
    : session_(session),
      sampler_(sampler),
      prompt_(std::move(prompt)),
      draw_{.sampler = &sampler, .logprobs = options.logprobs},
      text_(session, options, prompt_) {
  // So that no step needs to; a very long generation grows its list by doubling.
  const std::size_t most = static_cast<std::size_t>(session.kv.capacity()) + 1;
  const std::size_t tokens = std::min(options.max_tokens, kTokensAtOnce) + prompt_.size() + 1;
  session.reserve_tokens(std::min(session.tokens.size() + tokens, most));
  session.next_logits.drop();  // steps that draw leave none
}

std::size_t Decoding::rows_wanted() const noexcept {
  const std::size_t rows = session_.pending().size() + (prompt_.size() - prompt_done_);
  return rows == 0 && !session_.knows_logits() ? 1 : rows;
}

Result<bool> Decoding::offer(Run& run, std::size_t most) {
  const std::size_t wanted = rows_wanted();
  if (wanted == 0) return false;
  if (!session_.has_pending() && prompt_done_ == prompt_.size()) {
    if (session_.tokens.empty()) {
      return make_error(ErrorCode::invalid_state, "the session is empty: append the tokens that the generation is to follow first");
    }
    TESSERA_TRY_STATUS(run.check_range(session_));
    TESSERA_TRY_STATUS(uncompute_last(session_));
  }
  const std::size_t pending = std::min(session_.pending().size(), most);
  const bool all_pending = pending == session_.pending().size();
  offered_ = all_pending ? std::min(prompt_.size() - prompt_done_, most - pending) : 0;
  part_ = run.begin_part(session_, text_.options().stop, pending);
  for (const Token token : std::span(prompt_).subspan(prompt_done_, offered_)) run.add({.token = token});
  if (all_pending && prompt_done_ + offered_ == prompt_.size()) {
    RunRow& last = run.rows(part_).back();
    last.output = RowOutput::token;
    last.draw = &draw_;
  }
  return true;
}

std::size_t Decoding::reuse_prefix() noexcept {
  if (session_.has_pending() || prompt_.size() < prompt_done_ + 2) return 0;
  // The last token is computed: its logits are wanted.
  const auto tokens = std::span<const Token>(prompt_).subspan(prompt_done_, prompt_.size() - prompt_done_ - 1);
  const std::uint64_t n = session_.kv.adopt(tokens);
  const auto reused = tokens.first(n);
  session_.tokens.insert(session_.tokens.end(), reused.begin(), reused.end());  // there is room
  session_.reused += n;
  session_.has_last = session_.has_last && n == 0;
  prompt_done_ += n;
  return n;
}

// What can fail of a piece whose token has been drawn.
Status Decoding::accept(Piece& piece) {
  session_.reserve_tokens(session_.tokens.size() + 1);
  TESSERA_TRY_STATUS(text_.push(piece));
  return sampler_.accept(piece.token);
}

void Decoding::deliver(Token token) noexcept {
  session_.tokens.push_back(token);  // there is room
  text_.set_kv_tokens(session_.kv.length());
  (void)cut_if_full(session_);
}

Result<std::optional<Piece>> Decoding::take(Run& run) {
  TESSERA_TRY_STATUS(run.outcome(part_));
  const bool drawn = run.rows(part_).back().output == RowOutput::token;
  if (drawn) {
    if (const Status status = guard([&] { return accept(draw_.piece); }); !status) {
      run.undo(part_);
      return status.error();
    }
  }
  run.commit(part_);
  prompt_done_ += offered_;
  if (!drawn) {
    (void)cut_if_full(session_);
    return std::optional<Piece>();
  }
  deliver(draw_.piece.token);
  return std::optional<Piece>(std::move(draw_.piece));
}

Result<Piece> Decoding::draw() {
  draw_from(draw_, session_.last_logits(), session_.tokens, session_.stream_position());
  TESSERA_TRY_STATUS(draw_.status);
  TESSERA_TRY_STATUS(accept(draw_.piece));
  deliver(draw_.piece.token);
  return std::move(draw_.piece);
}

}  // namespace tessera::detail

#include "decoding/decoding.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "engine/run/streams.hpp"
#include "engine/session/edit.hpp"
#include "engine/session/growth.hpp"
#include "engine/session/token_budget.hpp"
#include "engine/views.hpp"

namespace tessera::detail {

namespace {

constexpr std::size_t kTokensAtOnce = 4096;  // memory is reserved for at most this many tokens at the beginning

}  // namespace

Status check_sampler(const Sampler& sampler, const Engine& engine) noexcept {
  TESSERA_TRY_STATUS(sampler.status());
  return sampler.check_tokenizer(engine.tokenizer().fingerprint());
}

Decoding::Decoding(Session::State& session, Sampler& sampler, const GenerateOptions& options, std::vector<Token> prompt)
    : session_(session),
      sampler_(sampler),
      prompt_(std::move(prompt)),
      draw_{.sampler = &sampler, .logprobs = options.logprobs},
      text_(session, options, prompt_) {
  // Reserves memory for the tokens, so that steps do not allocate. Only the list of a very long generation grows later, by doubling.
  const std::size_t most = static_cast<std::size_t>(view_of(session).kv.capacity()) + 1;
  const std::size_t tokens = std::min(options.max_tokens, kTokensAtOnce) + prompt_.size() + 1;
  reserve_tokens(session, std::min(view_of(session).tokens.size() + tokens, most));
  drop_next_logits(session);
  const SessionView view = view_of(session);
  sampler.begin_answer(view.stream_position() + prompt_.size());
  (void)sampler.begin_text(view.tokens, prompt_);  // fails only for an empty sampler, which the caller has excluded
}

Status Decoding::start_drafting(DraftsChosen chosen) {
  if (text_.options().early_exit.layers != 0) {
    TESSERA_TRY(exit_, EarlyExit::make(text_.options(), session_));
    return {};
  }
  if (text_.options().speculate.drafter == nullptr) return {};
  TESSERA_TRY(speculation_, Speculation::make(text_.options(), session_, sampler_, chosen));
  return {};
}

Decoding::DraftWish Decoding::draft_wish() noexcept {
  if (exit_) {  // tokens that exited are computed with the next token, whatever it costs
    const std::size_t pending = view_of(session_).pending().size();
    const std::size_t behind = pending > 0 && pending <= exit_->most_pending() ? pending - 1 : 0;
    return {.most = static_cast<std::uint32_t>(behind), .branches = 0, .chance = std::numeric_limits<double>::infinity(), .seconds = 0.0};
  }
  if (!speculation_ || no_drafts_ || !speculation_->status()) return {};
  const std::size_t room = room_for_drafts(speculation_->most());
  if (room == 0) return {};
  return {.most = static_cast<std::uint32_t>(room),
          .branches = static_cast<std::uint32_t>(speculation_->most_branches()),
          .chance = speculation_->chance(),
          .seconds = speculation_->seconds_per_draft()};
}

std::size_t Decoding::rows_wanted() const noexcept {
  if (speculation_ && speculation_->is_ahead()) return 0;
  const SessionView session = view_of(session_);
  const std::size_t rows = session.pending().size() + (prompt_.size() - prompt_done_);
  return rows == 0 && session.logits.empty() ? 1 : rows;
}

// Returns how many drafts may follow the sequence's rows: at most `most`, as many as fit into the context, and no more than the generation
// still needs.
std::size_t Decoding::room_for_drafts(std::size_t most) const noexcept {
  const std::uint64_t end = view_of(session_).tokens.size(), capacity = end_of_drafts(session_);
  std::size_t room = std::min<std::size_t>(most, capacity - std::min(end, capacity));
  const std::size_t wanted = text_.options().max_tokens;
  if (wanted != 0) room = std::min(room, wanted - std::min(wanted, text_.figures().tokens + 1));
  return room;
}

// Returns whether the next token may be drawn after the first layers. The first token of a generation is drawn by all layers: those of a
// prompt are computed anyway.
bool Decoding::may_exit() const noexcept {
  return exit_ && exit_->may_exit() && text_.figures().tokens > 0 && prompt_done_ == prompt_.size() && view_of(session_).has_pending();
}

Result<bool> Decoding::offer(Run& run, std::size_t most, std::size_t branches) {
  if (speculation_ && speculation_->is_stale()) drop_drafts();
  if (exit_) exit_->begin();
  if (may_exit()) {
    const std::size_t behind = view_of(session_).pending().size();
    if (behind <= exit_->most_pending()) {
      TESSERA_TRY(const bool exits, exit_->try_exit(session_, text_.options().stop));
      if (exits) return false;
    } else {  // the session gave its pages up: computes all tokens before the last one first
      most = std::min(most, behind - 1);
    }
  }
  const std::size_t wanted = rows_wanted();
  if (wanted == 0) return false;
  if (view_of(session_).pending().empty() && prompt_done_ == prompt_.size()) {
    if (view_of(session_).tokens.empty()) {
      return make_error(ErrorCode::invalid_state, "the session is empty: append the tokens that the generation is to follow first");
    }
    TESSERA_TRY_STATUS(run.check_range(session_));
    TESSERA_TRY_STATUS(uncompute_last(session_));
  }
  const std::size_t all = view_of(session_).pending().size(), pending = std::min(all, most);
  const bool all_pending = pending == all;
  offered_ = all_pending ? std::min(prompt_.size() - prompt_done_, most - pending) : 0;
  const bool drafts = speculation_ && !std::exchange(no_drafts_, false) && all_pending && prompt_done_ == prompt_.size();
  drafts_ = drafts ? speculation_->propose(room_for_drafts(most - pending), branches) : 0;
  branches_ = 0;
  if (speculation_ && !drafts) speculation_->propose_none();
  part_ = run.begin_part(session_, text_.options().stop, pending);
  for (const Token token : std::span(prompt_).subspan(prompt_done_, offered_)) run.add({.token = token});
  run.set_to_come(part_, all - pending + (prompt_.size() - prompt_done_ - offered_));
  if (all_pending && prompt_done_ + offered_ == prompt_.size()) {
    RunRow& last = run.rows(part_).back();
    last.output = RowOutput::token;
    last.draw = &draw_;
  }
  if (drafts_ > 0) speculation_->add_rows(run);
  return true;
}

Result<bool> Decoding::offer_ready(Run& run, std::size_t most, std::size_t branches) {
  for (;;) {
    in_run_ = false;  // stays false if offer() fails
    TESSERA_TRY(in_run_, offer(run, most, branches));
    const Status ready = in_run_ ? make_ready(run) : Status();
    if (ready) return in_run_;
    if (!retries_without_drafts(ready.error())) return ready.error();
  }
}

Result<std::optional<Piece>> Decoding::next(Run& run) {
  if (!in_run_) {
    TESSERA_TRY(Piece piece, draw());
    return std::optional<Piece>(std::move(piece));
  }
  const Status& computed = run.outcome(part_);
  if (!computed && retries_without_drafts(computed.error())) return std::optional<Piece>();
  return take(run);
}

Status Decoding::make_ready(Run& run) noexcept {
  TESSERA_TRY_STATUS(detail::make_ready(run, part_));
  if (drafts_ > 0) branches_ = speculation_->add_branches(run, part_);
  return {};
}

std::size_t Decoding::reuse_prefix() noexcept {
  const Reused reused = detail::reuse_prefix(session_, rest_of_prompt());
  prompt_done_ += reused.prompt;
  return reused.pending + reused.prompt;
}

void Decoding::hand_prompt_over() noexcept {
  add_pending(session_, rest_of_prompt());
  prompt_done_ = prompt_.size();
}

// Does everything for a drawn token that can fail: allocates memory, informs the sampler, and makes the piece's text.
Status Decoding::accept(Piece& piece) {
  reserve_tokens(session_, view_of(session_).tokens.size() + 1);
  TESSERA_TRY_STATUS(sampler_.accept(piece.token));
  const Status pushed = guard([&] { return text_.push(piece); });
  if (!pushed) (void)sampler_.rollback(1);
  return pushed;
}

void Decoding::deliver(const Piece& piece) noexcept {
  add_pending(session_, {&piece.token, 1});
  text_.set_kv_tokens(view_of(session_).kv.length());
  if (exit_) {
    text_.count_exit(exit_->has_tried(), exit_->has_exited());
    exit_->follow();
  }
  if (speculation_) {
    const bool is_ahead = speculation_->follow(piece.token);
    if (is_ahead) text_.count_accepted();
    if (!is_ahead || piece.finish != FinishReason::none) drop_drafts();
    if (piece.finish != FinishReason::none) speculation_->tell();
  }
  (void)cut_if_full(session_);
  (void)drop_if_over(session_);
}

void Decoding::drop_drafts() noexcept {
  if (std::exchange(drafts_, 0) > 0) commit_left(session_, view_of(session_).kv.length(), Reserved::give_back);
  speculation_->drop();
}

void Decoding::leave() noexcept {
  if (!speculation_) return;
  // Also drops the rows that a drafter has computed after the session's end.
  commit_left(session_, view_of(session_).kv.length(), Reserved::give_back);
  drop_drafts();
  speculation_->tell();
}

bool Decoding::retries_without_drafts(const Error& error) noexcept {
  if (drafts_ == 0) return false;
  drafts_ = 0;
  speculation_->drop();
  no_drafts_ = error.code() != ErrorCode::cancelled;
  return no_drafts_;
}

Result<std::optional<Piece>> Decoding::take(Run& run) {
  TESSERA_TRY_STATUS(run.outcome(part_));
  const std::span<const RunRow> rows = run.rows(part_);
  const std::size_t own = rows.size() - drafts_;
  const bool drawn = rows[own - 1].output == RowOutput::token;
  if (drawn) {
    if (const Status status = guard([&] { return accept(draw_.piece); }); !status) {
      run.undo(part_);
      return status.error();
    }
    if (speculation_) {
      speculation_->look_at(run);
      speculation_->step_ends(own + speculation_->drafts());
    }
    text_.count_step(speculation_ ? speculation_->drafts() : 0);
  }
  run.commit(part_, own, drafts_ > 0 ? Reserved::keep : Reserved::give_back);
  prompt_done_ += offered_;
  if (!drawn) {
    (void)cut_if_full(session_);
    return std::optional<Piece>();
  }
  deliver(draw_.piece);
  return std::optional<Piece>(std::move(draw_.piece));
}

Result<Piece> Decoding::draw() {
  const bool is_ahead = speculation_ && speculation_->is_ahead();
  if (is_ahead) speculation_->draw(draw_);
  else if (exit_ && exit_->has_exited()) draw_next(draw_, session_, exit_->logits());
  else draw_next(draw_, session_, view_of(session_).logits);
  TESSERA_TRY_STATUS(draw_.status);
  TESSERA_TRY_STATUS(accept(draw_.piece));
  if (is_ahead) commit_left(session_, view_of(session_).tokens.size(), Reserved::keep);
  deliver(draw_.piece);
  return std::move(draw_.piece);
}

}  // namespace tessera::detail

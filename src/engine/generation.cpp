#include <tessera/generation.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

#include <tessera/sampling/sampler.hpp>
#include <tessera/session.hpp>
#include <tessera/text/detokenizer.hpp>

#include "engine/append.hpp"
#include "engine/draw_token.hpp"
#include "engine/edit.hpp"
#include "engine/log_probs.hpp"
#include "engine/states.hpp"
#include "engine/stop_matcher.hpp"
#include "support/error.hpp"
#include "support/fp_state.hpp"

namespace tessera {

using detail::guard;
using detail::make_error;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kTokensAtOnce = 4096;  // room made for tokens at the beginning

// Control tokens are no text: what follows a lone BOS begins a sequence.
TextStart text_start(const Session::State& session) {
  const bool has_text = std::any_of(session.tokens.begin(), session.tokens.end(), [&](Token token) {
    return session.shared->tokenizer.type(token) != TokenType::control;
  });
  return has_text ? TextStart::continuation : TextStart::sequence;
}

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

std::string_view to_string(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::none: return "none";
    case FinishReason::max_tokens: return "max_tokens";
    case FinishReason::end_of_generation: return "end_of_generation";
    case FinishReason::stop_token: return "stop_token";
    case FinishReason::stop_string: return "stop_string";
    case FinishReason::callback: return "callback";
    case FinishReason::error: return "error";
    case FinishReason::cancelled: return "cancelled";
  }
  return "?";
}

struct Generation::State {
  State(Session::State& of, Sampler& with, const GenerateOptions& how)
      : session(of),
        sampler(with),
        options(how),
        detokenizer(of.shared->tokenizer, {.control = ControlText::omit, .start = text_start(of)}),
        matcher(options.stop_strings) {
    // So that no step needs to; a very long generation grows its list by doubling.
    const std::size_t most = static_cast<std::size_t>(session.kv.capacity()) + 1;
    session.reserve_tokens(std::min(session.tokens.size() + std::min(options.max_tokens, kTokensAtOnce) + 1, most));
    figures.prompt_tokens = std::exchange(session.prompt_tokens, 0);
    figures.prompt_seconds = std::exchange(session.prompt_seconds, 0.0);
  }
  State(const State&) = delete;  // the matcher looks at the options
  State& operator=(const State&) = delete;

  Result<Piece> step();

 private:
  Result<Piece> draw();
  Status draw_token(Piece& piece);
  Result<std::span<const float>> logits();
  [[nodiscard]] FinishReason reason_to_finish(Token token) const;
  Status add_text(Piece& piece);
  void add_figures();

  Session::State& session;
  Sampler& sampler;
  GenerateOptions options;
  Detokenizer detokenizer;
  detail::StopMatcher matcher;
  Clock::time_point start = Clock::now();
  Clock::time_point first;  // when the first token was there

 public:
  FinishReason finish = FinishReason::none;
  Figures figures;
};

// After the last token; computes the pending one if there is one.
Result<std::span<const float>> Generation::State::logits() {
  if (session.has_pending()) {
    TESSERA_TRY(const Logits logits, detail::append(session, {}, {.stop = options.stop}, false));
    return logits[0];
  }
  if (!session.has_last) {
    return make_error(ErrorCode::invalid_state,
                      "the logits after the last token are not known (the session is empty or was truncated, or they were not "
                      "asked for): append a token first");
  }
  return session.last_logits();
}

FinishReason Generation::State::reason_to_finish(Token token) const {
  if (std::find(options.stop_tokens.begin(), options.stop_tokens.end(), token) != options.stop_tokens.end()) {
    return FinishReason::stop_token;
  }
  if (options.end_of_generation == EndOfGeneration::stop && session.shared->tokenizer.is_end_of_generation(token)) {
    return FinishReason::end_of_generation;
  }
  return options.max_tokens != 0 && figures.tokens + 1 >= options.max_tokens ? FinishReason::max_tokens
                                                                              : FinishReason::none;
}

// The text that the piece's token makes certain. May find a stop string, and then decides how the piece finishes.
Status Generation::State::add_text(Piece& piece) {
  // A stop token has no text of its own; a padded embedding table has rows that are no tokens.
  const bool has_text = piece.finish != FinishReason::stop_token && piece.finish != FinishReason::end_of_generation &&
                        static_cast<std::size_t>(piece.token) < session.shared->tokenizer.vocab_size();
  std::string text;
  if (has_text) {
    TESSERA_TRY(text, detokenizer.push(piece.token));
  }
  if (piece.finish != FinishReason::none) text += detokenizer.finish();
  detail::StopMatcher::Step step = matcher.push(text);
  piece.text = std::move(step.text);
  if (step.stopped) {
    piece.finish = FinishReason::stop_string;
  } else if (piece.finish != FinishReason::none) {
    piece.text += matcher.finish();
  }
  return {};
}

void Generation::State::add_figures() {
  const auto now = Clock::now();
  if (figures.tokens == 0) first = now;
  ++figures.tokens;
  figures.time_to_first_token = figures.prompt_seconds + seconds_between(start, first);
  figures.generation_seconds = seconds_between(start, now);
  const double after_first = seconds_between(first, now);
  figures.tokens_per_second = after_first > 0.0 ? static_cast<double>(figures.tokens - 1) / after_first : 0.0;
  figures.bytes_per_token =
      session.shared->plan.weights_per_token + session.kv.length() * session.kv.layout().bytes_per_token();
}

Result<Piece> Generation::State::step() {
  const detail::FpState fp_state;
  if (options.stop.stop_requested()) {
    return make_error(ErrorCode::cancelled, "stopped before the next token; the session is as it was");
  }
  const std::uint64_t length = session.kv.length(), cut = detail::length_after_cut(session);
  Result<Piece> piece = guard([&] { return draw(); });
  // The token that was pending is so again, also behind the cut of a stream that was full.
  if (!piece) detail::uncompute(session, session.kv.length() < length ? cut : length);
  return piece;
}

// On the backend where that is possible, else from logits: then with log-probabilities, if they are asked for.
Status Generation::State::draw_token(Piece& piece) {
  if (const auto recipe = sampler.recipe(); recipe && options.logprobs == 0 && detail::draws_on_backend(session)) {
    TESSERA_TRY(piece.token, detail::draw_token(session, *recipe, options.stop));
    return {};
  }
  TESSERA_TRY(const std::span<const float> row, logits());
  TESSERA_TRY(piece.token, sampler.sample(row, session.tokens, session.stream_position()));
  if (options.logprobs == 0) return {};
  TESSERA_TRY(const double log_sum, detail::log_sum_exp(row));
  piece.logprob = static_cast<float>(static_cast<double>(row[static_cast<std::size_t>(piece.token)]) - log_sum);
  detail::top_log_probs(row, log_sum, options.logprobs, piece.top);
  return {};
}

Result<Piece> Generation::State::draw() {
  Piece piece;
  TESSERA_TRY_STATUS(draw_token(piece));
  session.reserve_tokens(session.tokens.size() + 1);
  piece.finish = reason_to_finish(piece.token);
  TESSERA_TRY_STATUS(add_text(piece));
  TESSERA_TRY_STATUS(sampler.accept(piece.token));
  session.tokens.push_back(piece.token);
  add_figures();
  (void)detail::cut_if_full(session);  // not before: a draw that fails leaves the session as it was
  finish = piece.finish;
  return piece;
}

Generation::Generation(Result<std::unique_ptr<State>> state) noexcept {
  if (state) {
    state_ = *std::move(state);
  } else {
    failure_ = std::move(state).error();
  }
}
Generation::Generation(Generation&&) noexcept = default;
Generation& Generation::operator=(Generation&&) noexcept = default;
Generation::~Generation() = default;

std::optional<Result<Piece>> Generation::next() noexcept {
  if (state_ == nullptr) {
    if (!failure_) return std::nullopt;
    Result<Piece> error = *std::move(failure_);
    failure_.reset();
    return error;
  }
  if (state_->finish != FinishReason::none) return std::nullopt;
  Result<Piece> piece = guard([&] { return state_->step(); });
  if (!piece) {
    const bool cancelled = piece.error().code() == ErrorCode::cancelled;
    state_->finish = cancelled ? FinishReason::cancelled : FinishReason::error;
  }
  return piece;
}

FinishReason Generation::finish_reason() const noexcept { return state_ ? state_->finish : FinishReason::error; }
Figures Generation::figures() const noexcept { return state_ ? state_->figures : Figures{}; }

Generation Session::generate(Sampler& sampler, const GenerateOptions& options) noexcept {
  return Generation(guard([&]() -> Result<std::unique_ptr<Generation::State>> {
    if (state_ == nullptr) return detail::moved_from("session");
    return std::make_unique<Generation::State>(*state_, sampler, options);
  }));
}

}  // namespace tessera

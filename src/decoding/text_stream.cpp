#include <tessera/text_stream.hpp>

#include <algorithm>
#include <utility>

#include <tessera/session.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/fp_state.hpp"
#include "decoding/text_state.hpp"
#include "engine/run/log_probs.hpp"
#include "engine/session/growth.hpp"
#include "engine/views.hpp"

namespace tessera {

using detail::guard;
using detail::make_error;

namespace detail {

// Control tokens do not count as text: the text after a single BOS is a new text.
TextStart text_start(const Session::State& session, std::span<const Token> prompt) {
  const SessionView view = view_of(session);
  const auto is_text = [&](Token token) { return view.engine.tokenizer().type(token) != TokenType::control; };
  const bool has_text = std::ranges::any_of(view.tokens, is_text) || std::ranges::any_of(prompt, is_text);
  return has_text ? TextStart::continuation : TextStart::sequence;
}

namespace {

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

TextState::TextState(Session::State& session, const GenerateOptions& options, std::span<const Token> prompt)
    : options_(options),
      tokenizer_(view_of(session).engine.tokenizer()),
      detokenizer_(tokenizer_, {.control = options_.control_text, .start = text_start(session, prompt)}),
      matcher_(options_.stop_strings, options_.stop_free ? std::span<const MarkedText>(options_.stop_free->stretches) : std::span<const MarkedText>(),
               options_.stop_free && options_.stop_free->starts_inside),
      weights_per_token_(view_of(session).engine.plan().weights_per_token),
      kv_per_token_(view_of(session).kv.layout().bytes_per_token()),
      kv_tokens_(view_of(session).tokens.size() + prompt.size()),
      n_layers_(view_of(session).engine.spec().n_layers()) {
  const PromptFigures before = take_prompt_figures(session);
  figures_.prompt_tokens = before.tokens + prompt.size();
  figures_.prompt_seconds = before.seconds;
}

Status TextState::check(const GenerateOptions& options) {
  const EndOfGeneration end = options.end_of_generation;
  if (end == EndOfGeneration::stop || end == EndOfGeneration::ignore) return {};
  return make_error(ErrorCode::invalid_argument, "an end_of_generation of kind {}; choose stop or ignore", static_cast<int>(end));
}

FinishReason TextState::reason_to_finish(Token token) const {
  if (std::find(options_.stop_tokens.begin(), options_.stop_tokens.end(), token) != options_.stop_tokens.end()) {
    return FinishReason::stop_token;
  }
  if (options_.end_of_generation == EndOfGeneration::stop && tokenizer_.is_end_of_generation(token)) {
    return FinishReason::end_of_generation;
  }
  return options_.max_tokens != 0 && figures_.tokens + 1 >= options_.max_tokens ? FinishReason::max_tokens
                                                                                : FinishReason::none;
}

bool TextState::is_hidden(Token token) const {
  if (!options_.shown_control || !tokenizer_.is_control(token)) return false;
  return std::ranges::find(*options_.shown_control, token) == options_.shown_control->end();
}

Status TextState::check_goes_on() const {
  if (finish_ == FinishReason::none) return {};
  return make_error(ErrorCode::invalid_state, "this generation has finished ({}): no token follows", to_string(finish_));
}

Status TextState::push(Piece& piece) {
  TESSERA_TRY_STATUS(check_goes_on());
  FinishReason finish = reason_to_finish(piece.token);
  // A stop token has no text. Numbers of a padded vocabulary that are not tokens have no text either.
  const bool has_text = finish != FinishReason::stop_token && finish != FinishReason::end_of_generation &&
                        piece.token >= 0 && static_cast<std::size_t>(piece.token) < tokenizer_.vocab_size() && !is_hidden(piece.token);
  Detokenizer detokenizer = detokenizer_;
  std::string text;
  if (has_text) {
    TESSERA_TRY(text, detokenizer.push(piece.token));
  }
  if (finish != FinishReason::none) text += detokenizer.finish();
  StopMatcher::Passed step = matcher_.push(std::move(text), finish == FinishReason::none ? More::yes : More::no);
  detokenizer_ = std::move(detokenizer);
  piece.text = std::move(step.text);
  piece.finish = finish_ = step.stopped() ? FinishReason::stop_string : finish;
  piece.stop_string = step.stop;
  count_token();
  return {};
}

void TextState::count_token() noexcept {
  const auto now = Clock::now();
  if (figures_.tokens == 0) first_ = now;
  ++figures_.tokens;
  figures_.time_to_first_token = figures_.prompt_seconds + seconds_between(start_, first_);
  figures_.generation_seconds = seconds_between(start_, now);
  const double after_first = seconds_between(first_, now);
  figures_.tokens_per_second = after_first > 0.0 ? static_cast<double>(figures_.tokens - 1) / after_first : 0.0;
  set_kv_tokens(kv_tokens_ + figures_.tokens - 1);
}

void TextState::count_exit(bool tried, bool exited) noexcept {
  figures_.exit_tries += tried ? 1 : 0;
  figures_.exited += exited ? 1 : 0;
  const double all = static_cast<double>(figures_.tokens) * n_layers_;
  const double saved = static_cast<double>(figures_.exited) * n_layers_ - static_cast<double>(figures_.exit_tries) * options_.early_exit.layers;
  figures_.layers_saved = all > 0.0 ? saved / all : 0.0;
}

void TextState::set_kv_tokens(std::uint64_t kv_tokens) noexcept {
  figures_.bytes_per_token = weights_per_token_ + kv_tokens * kv_per_token_;
}

}  // namespace detail

struct [[gnu::visibility("hidden")]] TextStream::State {
  State(Session::State& session, const GenerateOptions& options) : text(session, options) {}
  detail::TextState text;
};

TextStream::TextStream(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
TextStream::TextStream() noexcept = default;
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;
TextStream::~TextStream() = default;

Result<TextStream> TextStream::create(Session& session, const GenerateOptions& options) noexcept {
  return guard([&]() -> Result<TextStream> {
    Session::State* state = session.state_.get();
    if (state == nullptr) return detail::empty_handle("Session");
    const detail::Changing use(*detail::view_of(*state).use);
    TESSERA_TRY_STATUS(use.status());
    TESSERA_TRY_STATUS(detail::TextState::check(options));
    return TextStream(std::make_unique<State>(*state, options));
  });
}

Result<Piece> TextStream::push(Token token, std::span<const float> logits) noexcept {
  return guard([&]() -> Result<Piece> {
    if (state_ == nullptr) return detail::empty_handle("TextStream");
    const detail::FpState fp_state;
    TESSERA_TRY_STATUS(state_->text.check_goes_on());
    const std::uint32_t logprobs = state_->text.options().logprobs;
    Piece piece{.token = token};
    if (logprobs != 0) {
      if (token < 0 || static_cast<std::size_t>(token) >= logits.size()) {
        return make_error(ErrorCode::invalid_argument,
                          "log-probabilities of token {} were asked for, and {} logits given", token, logits.size());
      }
      TESSERA_TRY_STATUS(detail::add_log_probs(logits, logprobs, piece));
    }
    TESSERA_TRY_STATUS(state_->text.push(piece));
    return piece;
  });
}

FinishReason TextStream::finish_reason() const noexcept {
  return state_ == nullptr ? FinishReason::error : state_->text.finish_reason();
}
Figures TextStream::figures() const noexcept { return state_ == nullptr ? Figures{} : state_->text.figures(); }

}  // namespace tessera

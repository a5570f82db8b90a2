#include <tessera/extend/decoding/draft_target.hpp>

#include <algorithm>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "decoding/first_layers.hpp"
#include "engine/run/head_guesses.hpp"
#include "engine/run/streams.hpp"
#include "engine/session/growth.hpp"
#include "engine/views.hpp"

namespace tessera {

Status detail::guess_by_layers(Session::State& session, std::uint32_t layers, std::size_t ahead, Token draft, std::span<float> logits,
                       const std::stop_token& stop) {
  const detail::SessionView view = detail::view_of(session);
  detail::Run run(*view.shared, {.first_layer = 0,
                                 .last_layer = layers,
                                 .head = detail::Head::anywhere,
                                 .keep = detail::Keep::nothing,
                                 .stop = stop});
  const std::size_t part = ahead == 0 ? run.begin_part(session) : run.begin_drafts(session, view.pending().size() + ahead - 1);
  if (ahead > 0) run.add({.token = draft});
  detail::RunRow& last = run.rows(part).back();
  last.output = detail::RowOutput::logits;
  last.to = logits.data();
  TESSERA_TRY_STATUS(detail::make_ready(run, part));
  run.compute();
  TESSERA_TRY_STATUS(run.outcome(part));
  run.leave(part);
  return {};
}

using detail::guard;
using detail::make_error;

const Engine& DraftTarget::engine() const noexcept {
  return session_ == nullptr ? detail::empty_value<Engine>() : detail::view_of(*session_).engine;
}

std::size_t DraftTarget::computed() const noexcept { return session_ == nullptr ? 0 : detail::view_of(*session_).kv.length(); }

std::span<const float> DraftTarget::hidden() const noexcept {
  return session_ == nullptr ? std::span<const float>() : detail::hidden_behind(*session_);
}

Result<TargetGuesses> DraftTarget::guess_by_heads(std::size_t most, std::span<float> hidden) const noexcept {
  return guard([&]() -> Result<TargetGuesses> {
    if (session_ == nullptr) return detail::empty_handle("DraftTarget");
    const std::uint32_t limit = engine().spec().draft_heads.most_guesses;
    if (limit != 0 && most > limit) return make_error(ErrorCode::invalid_argument, "{} guesses in a row; the draft heads make at most {}", most, limit);
    TESSERA_TRY_STATUS(detail::reserve_guesses(*session_, most));
    const std::span<const float> behind = detail::hidden_behind(*session_);
    if (hidden.size() != behind.size()) {
      return make_error(ErrorCode::invalid_argument, "room for {} values of the hidden state; it has {}", hidden.size(), behind.size());
    }
    std::ranges::copy(behind, hidden.begin());
    TargetGuesses guesses;
    guesses.session_ = session_;
    guesses.number_ = detail::begin_guesses(*session_);
    guesses.most_ = most;
    guesses.hidden_ = hidden;
    return guesses;
  });
}

Result<TargetGuesses> DraftTarget::guess_by_layers(std::uint32_t layers) const noexcept {
  return guard([&]() -> Result<TargetGuesses> {
    if (session_ == nullptr) return detail::empty_handle("DraftTarget");
    TESSERA_TRY_STATUS(check_layers(engine(), layers));
    if (!detail::view_of(*session_).has_pending()) {
      return make_error(ErrorCode::invalid_state, "no token is pending: there is nothing to guess behind");
    }
    TargetGuesses guesses;
    guesses.session_ = session_;
    guesses.number_ = detail::begin_guesses(*session_);
    guesses.layers_ = layers;
    guesses.most_ = detail::view_of(*session_).kv.capacity();
    return guesses;
  });
}

Status DraftTarget::check_layers(const Engine& engine, std::uint32_t layers) noexcept {
  return guard([&]() -> Status {
    const ModelSpec& spec = engine.spec();
    if (spec.vocab_size == 0) return detail::empty_handle("Engine");
    if (layers == 0 || layers >= spec.n_layers()) {
      return make_error(ErrorCode::invalid_argument, "an early exit after layer {} of {}; choose 1 to {}", layers, spec.n_layers(),
                        spec.n_layers() - 1);
    }
    if (std::ranges::any_of(spec.layers, &LayerSpec::is_recurrent)) {
      return make_error(ErrorCode::unsupported,
                        "{} has recurrent layers: drafts of its first layers would be written over their state. Choose another "
                        "drafter",
                        spec.architecture);
    }
    return {};
  });
}

Status TargetGuesses::guess(Token token, std::span<float> logits, const std::stop_token& stop) {
  if (session_ == nullptr) return detail::empty_handle("TargetGuesses");
  const detail::SessionView view = detail::view_of(*session_);
  const std::size_t vocab = view.engine.spec().vocab_size;
  // A series of guesses ends at an error, and when another series begins. After an error the series cannot go on, because the failed run
  // has freed the pages after the sequence's end, to which guesses by heads would write.
  if (number_ != view.guesses) return make_error(ErrorCode::invalid_state, "these guesses have ended, by an error or by others of the target");
  if (done_ == most_) return make_error(ErrorCode::invalid_state, "there were {} guesses already: begin with room for more", most_);
  if (token < 0 || static_cast<std::size_t>(token) >= vocab || (done_ == 0 && token != view.tokens.back())) {
    return make_error(ErrorCode::invalid_argument, "token {} does not follow: give the history's last token first, then each draft", token);
  }
  if (logits.size() != vocab) {
    return make_error(ErrorCode::invalid_argument, "room for {} logits of a vocabulary of {}", logits.size(), vocab);
  }
  const Status status = layers_ == 0 ? detail::guess(*session_, done_, token, hidden_, logits, stop)
                                     : detail::guess_by_layers(*session_, layers_, done_, token, logits, stop);
  if (status) ++done_;
  else number_ = 0;
  return status;
}

Status TargetGuesses::next(Token token, std::span<float> logits, const std::stop_token& stop) noexcept {
  return guard([&] { return guess(token, logits, stop); });
}

}  // namespace tessera

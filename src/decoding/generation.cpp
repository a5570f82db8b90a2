// Session::generate(): a Generation decodes one text with one Decoding. Each step is computed in a run of its own.
#include <tessera/generation.hpp>

#include <atomic>
#include <utility>

#include <tessera/session.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "decoding/decoding.hpp"
#include "decoding/drive.hpp"
#include "engine/session/growth.hpp"
#include "engine/views.hpp"

namespace tessera {

using detail::Changing;
using detail::guard;
using detail::Run;

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

struct [[gnu::visibility("hidden")]] Generation::State {
  State(Session::State& session, Sampler& sampler, const GenerateOptions& options)
      : shared_(detail::view_of(session).shared),
        use_(detail::view_of(session).use),
        stop_(options.stop),
        decoding_(session, sampler, options) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    {
      const Changing use(*use_, this);
      if (use.status() && !ended_) decoding_.leave();
    }
    use_->release(this);
  }

  Status start() { return decoding_.start_drafting(); }

  std::optional<Result<Piece>> next() noexcept {
    if (ended_) return std::nullopt;
    const Changing use(*use_, this);
    if (!use.status()) {  // another call uses the session, so this generation ends with an error
      refused_ = ended_ = true;
      return Result<Piece>(use.status().error());
    }
    Result<Piece> piece = guard([&] { return step(); });
    if (!piece) error_ = piece.error().code() == ErrorCode::cancelled ? FinishReason::cancelled : FinishReason::error;
    if (!piece || piece->finish != FinishReason::none) {
      if (!piece) decoding_.leave();
      ended_ = true;
      use_->release(this);
    }
    return piece;
  }

  [[nodiscard]] FinishReason finish_reason() const noexcept {
    return refused_ ? FinishReason::error : error_ != FinishReason::none ? error_ : decoding_.finish_reason();
  }
  [[nodiscard]] Figures figures() const noexcept { return decoding_.figures(); }
  [[nodiscard]] Status drafting() const noexcept {
    return guard([&] { return decoding_.drafting(); });
  }

 private:
  Result<Piece> step();

  std::shared_ptr<const Engine::State> shared_;
  std::shared_ptr<detail::SessionUse> use_;
  std::stop_token stop_;
  detail::Decoding decoding_;
  FinishReason error_ = FinishReason::none;  // error or cancelled, if an error has ended the generation
  std::atomic<bool> ended_ = false, refused_ = false;
};

Result<Piece> Generation::State::step() {
  std::optional<Piece> piece;
  const std::size_t rows = detail::view_of(*shared_).options.step_rows;
  const auto offer = [&](Run& run) -> Status {
    TESSERA_TRY_STATUS(decoding_.offer_ready(run, rows));
    return {};
  };
  const auto take = [&](Run& run) -> Status {
    TESSERA_TRY(piece, decoding_.next(run));
    return {};
  };
  while (!piece) {
    TESSERA_TRY_STATUS(detail::drive_step(*shared_, stop_, "the next token; the session is as it was", offer, take));
  }
  return *std::move(piece);
}

Generation::Generation(Result<std::unique_ptr<State>> state) noexcept {
  if (state) {
    state_ = *std::move(state);
  } else {
    failure_ = std::move(state).error();
  }
}
Generation::Generation() noexcept = default;
Generation::Generation(Generation&&) noexcept = default;
Generation& Generation::operator=(Generation&&) noexcept = default;
Generation::~Generation() = default;

std::optional<Result<Piece>> Generation::next() noexcept {
  if (state_ == nullptr) {
    if (has_ended_) return std::nullopt;
    has_ended_ = true;
    return Result<Piece>(failure_.empty() ? detail::empty_handle("Generation") : failure_);
  }
  return state_->next();
}

FinishReason Generation::finish_reason() const noexcept {
  return state_ ? state_->finish_reason() : FinishReason::error;
}
Figures Generation::figures() const noexcept { return state_ ? state_->figures() : Figures{}; }

Status Generation::drafting() const noexcept {
  if (state_) return state_->drafting();
  return failure_.empty() ? detail::empty_handle("Generation") : failure_;
}

Generation Session::generate(Sampler& sampler, const GenerateOptions& options) noexcept {
  return Generation(guard([&]() -> Result<std::unique_ptr<Generation::State>> {
    if (state_ == nullptr) return detail::empty_handle("Session");
    const detail::SessionView session = detail::view_of(*state_);
    const Changing use(*session.use);
    TESSERA_TRY_STATUS(use.status());
    TESSERA_TRY_STATUS(detail::check_sampler(sampler, session.engine));
    TESSERA_TRY_STATUS(detail::TextState::check(options));
    auto state = std::make_unique<Generation::State>(*state_, sampler, options);
    Status ready = state->start();
    if (ready) ready = session.use->claim(state.get());
    if (!ready) {  // returns the prompt's figures to the session, so that a later generation reports them
      const Figures figures = state->figures();
      detail::give_back(*state_, {.tokens = figures.prompt_tokens, .seconds = figures.prompt_seconds});
      return std::move(ready).error();
    }
    return state;
  }));
}

Result<GenerationSummary> Session::generate(Sampler& sampler, const GenerateOptions& options,
                                            const std::function<bool(const Piece&)>& callback) noexcept {
  return guard([&]() -> Result<GenerationSummary> {
    Generation generation = generate(sampler, options);
    while (auto piece = generation.next()) {
      if (!*piece) return std::move(*piece).error();
      if (callback && !callback(**piece) && (*piece)->finish == FinishReason::none) {
        return GenerationSummary{.finish = FinishReason::callback, .figures = generation.figures()};
      }
    }
    return GenerationSummary{.finish = generation.finish_reason(), .figures = generation.figures()};
  }, ErrorCode::callback_failed);
}

}  // namespace tessera

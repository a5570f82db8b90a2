#include <tessera/sampling/sampler.hpp>

#include <algorithm>

#include "core/error.hpp"
#include "core/fp_state.hpp"
#include "sampling/state.hpp"

namespace tessera {

using detail::guard;
using detail::make_error;
using sampling::SamplerState;

namespace {

// Returns the error that every call of an unusable sampler returns. A sampler is unusable if it has an invalid option or is an empty
// handle.
Status usable(const SamplerState* state) {
  if (state == nullptr) {
    return make_error(ErrorCode::invalid_state,
                      "this Sampler is empty: it was default-constructed or moved from, its chain was built before or had no memory, or "
                      "it is the value of a failed Result; build a chain again, and use the object that was moved to");
  }
  if (state->error) return *state->error;
  return {};
}

// Runs fn(), which applies the stages. If fn() fails, sets the stages' scratch memory (Candidates::counts(), one number for each token) to
// 0, as the next stage expects it. A stage that fails may leave other numbers there.
template <class Fn>
auto run(SamplerState& state, Fn&& fn) noexcept {
  auto result = guard(std::forward<Fn>(fn), ErrorCode::callback_failed);
  if (!result) std::fill(state.counts.begin(), state.counts.end(), 0u);
  return result;
}

}  // namespace

Sampler::Sampler(std::unique_ptr<SamplerState> state) noexcept : state_(std::move(state)) {}
Sampler::Sampler() noexcept = default;
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;
Sampler::~Sampler() = default;

Status Sampler::status() const noexcept {
  return guard([&] { return usable(state_.get()); });
}

Result<Token> Sampler::sample(std::span<const float> logits, std::span<const Token> history, std::uint64_t position,
                              std::span<const Token> suppressed) noexcept {
  const detail::FpState fp_state;  // sets the default state: the application's state may flush denormals or round in another way
  TESSERA_TRY_STATUS(status());
  TESSERA_TRY_STATUS(run(*state_, [&] { return state_->transform(logits, history, position, suppressed); }));
  const sampling::Context context{.history = history, .position = position, .seed = state_->seed, .stream = state_->stream};
  return state_->last->draw(context.uniform());
}

Result<std::span<const sampling::Candidate>> Sampler::distribution(std::span<const float> logits,
                                                                   std::span<const Token> history,
                                                                   std::uint64_t position,
                                                                   std::span<const Token> suppressed) noexcept {
  const detail::FpState fp_state;
  TESSERA_TRY_STATUS(status());
  TESSERA_TRY_STATUS(run(*state_, [&] {
    Status done = state_->transform(logits, history, position, suppressed);
    if (done) state_->list();
    return done;
  }));
  return std::span<const sampling::Candidate>(state_->listing);
}

Status Sampler::accept(Token token) noexcept {
  TESSERA_TRY_STATUS(status());
  const bool has_text = state_->follows_text();
  if (has_text) {
    TESSERA_TRY_STATUS(guard([&]() -> Status {
      auto& text = state_->text;
      if (text.size() == text.capacity()) text.reserve(std::max<std::size_t>(64, 2 * text.size()));
      return {};
    }));
  }
  const bool remembers = std::any_of(state_->stages.begin(), state_->stages.end(), [](const auto& s) { return s->remembers(); });
  const float probability = remembers ? state_->probability_of(token) : 0.0f;
  for (std::size_t i = 0; i < state_->stages.size(); ++i) {
    auto done = guard([&] { return state_->stages[i]->accept(token, probability); }, ErrorCode::callback_failed);
    if (done) continue;
    while (i-- > 0) state_->stages[i]->rollback(1);
    return done;
  }
  state_->forget();
  ++state_->accepted;
  if (has_text) state_->text.push_back(token);  // cannot throw: memory was reserved
  return {};
}

Status Sampler::rollback(std::size_t n) noexcept {
  TESSERA_TRY_STATUS(status());
  if (n > state_->accepted) {
    return make_error(ErrorCode::invalid_argument, "cannot roll back {} tokens: the sampler has accepted {}", n,
                      state_->accepted);
  }
  for (const auto& stage : state_->stages) stage->rollback(n);
  state_->accepted -= n;
  state_->text.resize(std::min(state_->text.size(), state_->accepted));
  state_->forget();
  return {};
}

Status Sampler::begin_text(std::span<const Token> sequence, std::span<const Token> prompt) noexcept {
  TESSERA_TRY_STATUS(status());
  const std::span<const Token> text = state_->text;
  if (text.empty()) return {};
  const auto ended = [](const auto& stage) { return stage->follows_text() && stage->text_ended(); };
  const std::size_t in_prompt = std::min(text.size(), prompt.size());
  const std::size_t before = text.size() - in_prompt;
  const bool goes_on = before <= sequence.size() && std::ranges::equal(text.last(in_prompt), prompt.last(in_prompt)) &&
                       std::ranges::equal(text.first(before), sequence.last(before));
  if (goes_on && std::ranges::none_of(state_->stages, ended)) return {};
  return rollback(state_->accepted);
}

void Sampler::begin_answer(std::uint64_t position) noexcept {
  if (state_ != nullptr) state_->answer_from = position;
}

Status Sampler::check_tokenizer(const Hash128& fingerprint) const noexcept {
  TESSERA_TRY_STATUS(status());
  if (fingerprint == Hash128{}) return {};
  for (const auto& stage : state_->stages) {
    const Hash128 made_for = stage->tokenizer();
    if (made_for == Hash128{} || made_for == fingerprint) continue;
    return make_error(ErrorCode::invalid_argument,
                      "the sampler's stage \"{}\" was made for another tokenizer than this model's: its tokens mean other texts. Make "
                      "it with the tokenizer of the engine that draws",
                      stage->name());
  }
  return {};
}

Result<std::string> Sampler::forced() noexcept {
  return guard(
      [&]() -> Result<std::string> {
        TESSERA_TRY_STATUS(usable(state_.get()));
        for (const auto& stage : state_->stages) {
          TESSERA_TRY(std::string bytes, stage->forced());
          if (!bytes.empty()) return bytes;
        }
        return std::string();
      },
      ErrorCode::callback_failed);
}

Result<Sampler> Sampler::clone() const noexcept {
  return guard(
      [&]() -> Result<Sampler> {
        TESSERA_TRY_STATUS(usable(state_.get()));
        auto copy = std::make_unique<SamplerState>();
        for (const auto& stage : state_->stages) {
          auto cloned = stage->clone();
          if (cloned == nullptr) return detail::out_of_memory_error();
          copy->stages.push_back(std::move(cloned));
        }
        copy->seed = state_->seed;
        copy->stream = state_->stream;
        copy->answer_from = state_->answer_from;
        copy->accepted = state_->accepted;
        copy->text = state_->text;
        return Sampler(std::move(copy));
      },
      ErrorCode::callback_failed);
}

std::size_t Sampler::workspace_bytes(std::size_t vocabulary) noexcept {
  return vocabulary * SamplerState::kBytesPerToken;
}

std::uint64_t Sampler::seed() const noexcept { return state_ == nullptr ? 0 : state_->seed; }
std::uint32_t Sampler::stream() const noexcept { return state_ == nullptr ? 0 : state_->stream; }

void Sampler::reseed(std::uint64_t seed, std::uint32_t stream) noexcept {
  if (state_ == nullptr) return;
  state_->seed = seed;
  state_->stream = stream;
}

std::optional<sampling::Recipe> Sampler::recipe() const noexcept {
  if (state_ == nullptr || state_->error || state_->stages.size() > kMaxSampleSteps) return std::nullopt;
  sampling::Recipe recipe{.steps = {}, .seed = state_->seed, .stream = state_->stream};
  for (const auto& stage : state_->stages) {
    const auto step = stage->step();
    if (!step) return std::nullopt;
    recipe.steps.list[recipe.steps.size++] = *step;
  }
  return recipe;
}

}  // namespace tessera

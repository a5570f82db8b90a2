#include <tessera/sampling/chain.hpp>

#include "core/error.hpp"
#include "core/guard.hpp"
#include "sampling/stages/dry.hpp"
#include "sampling/stages/greedy.hpp"
#include "sampling/stages/logit_bias.hpp"
#include "sampling/stages/min_p.hpp"
#include "sampling/stages/mirostat.hpp"
#include "sampling/stages/penalties.hpp"
#include "sampling/stages/temperature.hpp"
#include "sampling/stages/top_k.hpp"
#include "sampling/stages/top_n_sigma.hpp"
#include "sampling/stages/top_p.hpp"
#include "sampling/stages/typical_p.hpp"
#include "sampling/stages/xtc.hpp"
#include "sampling/state.hpp"
#include "sampling/token_list.hpp"

namespace tessera::sampling {

Chain::Chain() noexcept : state_(new (std::nothrow) SamplerState) {}
Chain::Chain(Chain&&) noexcept = default;
Chain& Chain::operator=(Chain&&) noexcept = default;
Chain::~Chain() = default;

Chain& Chain::greedy() & noexcept { return stage(Greedy{}); }
Chain& Chain::temperature(float temperature) & noexcept { return stage(Temperature{temperature}); }
Chain& Chain::dynamic_temperature(const DynamicTemperatureOptions& options) & noexcept {
  return stage(DynamicTemperature{options});
}
Chain& Chain::top_k(std::size_t k) & noexcept { return stage(TopK{k}); }
Chain& Chain::top_p(float p, std::size_t min_keep) & noexcept { return stage(TopP{p, min_keep}); }
Chain& Chain::min_p(float p, std::size_t min_keep) & noexcept { return stage(MinP{p, min_keep}); }
Chain& Chain::typical_p(float p, std::size_t min_keep) & noexcept { return stage(TypicalP{p, min_keep}); }
Chain& Chain::top_n_sigma(float n) & noexcept { return stage(TopNSigma{n}); }
Chain& Chain::penalties(const PenaltyOptions& options) & noexcept { return stage(Penalties{options}); }
Chain& Chain::xtc(const XtcOptions& options) & noexcept { return stage(Xtc{options}); }
Chain& Chain::mirostat(const MirostatOptions& options) & noexcept { return stage(Mirostat(options)); }

Chain& Chain::logit_bias(std::span<const TokenBias> biases) & noexcept {
  auto made = LogitBias::make(biases);
  return made ? stage(*std::move(made)) : fail(std::move(made).error());
}

Chain& Chain::allow(std::span<const Token> tokens) & noexcept {
  auto made = TokenList::make(TokenList::Kind::allow, tokens);
  return made ? stage(*std::move(made)) : fail(std::move(made).error());
}

Chain& Chain::deny(std::span<const Token> tokens) & noexcept {
  auto made = TokenList::make(TokenList::Kind::deny, tokens);
  return made ? stage(*std::move(made)) : fail(std::move(made).error());
}

Chain& Chain::dry(const DryOptions& options) & noexcept {
  auto made = Dry::make(options);
  return made ? stage(*std::move(made)) : fail(std::move(made).error());
}

Chain& Chain::seed(std::uint64_t seed, std::uint32_t stream) & noexcept {
  if (state_ == nullptr) return *this;
  state_->seed = seed;
  state_->stream = stream;
  return *this;
}

Sampler Chain::build() noexcept { return Sampler(std::move(state_)); }

Chain& Chain::stage(std::unique_ptr<Stage> own) & noexcept {
  if (own != nullptr || state_ == nullptr) return add(std::move(own));
  return fail(tessera::detail::make_error(
      ErrorCode::invalid_argument,
      "stage {} of the chain is a null pointer: pass a stage, or leave the call out where there is none",
      state_->stages.size() + 1));
}

Chain& Chain::add(std::unique_ptr<Stage> stage) noexcept {
  if (state_ == nullptr) return *this;
  if (stage == nullptr) return fail(tessera::detail::out_of_memory_error());
  auto added = tessera::detail::guard([&]() -> Status {
    state_->stages.push_back(std::move(stage));
    return {};
  });
  return added ? *this : fail(std::move(added).error());
}

Chain& Chain::fail(Error error) noexcept {
  if (state_ != nullptr && !state_->error) state_->error.emplace(std::move(error));
  return *this;
}

}  // namespace tessera::sampling

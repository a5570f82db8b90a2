// Builds a Sampler from stages, applied in the order in which they are written; the draw comes after the last:
//
//   auto sampler = tessera::sampling::chain().temperature(0.8f).top_p(0.95f).seed(42).build();
//
// An invalid option does not stop the chain: the sampler's first call (or Sampler::status()) reports it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include <tessera/core/result.hpp>
#include <tessera/sampling/dry.hpp>
#include <tessera/sampling/greedy.hpp>
#include <tessera/sampling/logit_bias.hpp>
#include <tessera/sampling/min_p.hpp>
#include <tessera/sampling/mirostat.hpp>
#include <tessera/sampling/penalties.hpp>
#include <tessera/sampling/sampler.hpp>
#include <tessera/sampling/stage.hpp>
#include <tessera/sampling/temperature.hpp>
#include <tessera/sampling/token_list.hpp>
#include <tessera/sampling/top_k.hpp>
#include <tessera/sampling/top_n_sigma.hpp>
#include <tessera/sampling/top_p.hpp>
#include <tessera/sampling/typical_p.hpp>
#include <tessera/sampling/xtc.hpp>

namespace tessera::sampling {

class Chain {
 public:
  Chain() noexcept;
  Chain(Chain&&) noexcept;
  Chain& operator=(Chain&&) noexcept;
  ~Chain();

  // The header that carries each stage's name says what it does and where it comes from.
  Chain& greedy() noexcept;                                                       // the best token, always
  Chain& temperature(float temperature) noexcept;                                 // 0 = greedy
  Chain& dynamic_temperature(const DynamicTemperatureOptions& options) noexcept;
  Chain& top_k(std::size_t k) noexcept;                                           // 0 = all
  Chain& top_p(float p, std::size_t min_keep = 1) noexcept;                       // (0, 1]
  Chain& min_p(float p, std::size_t min_keep = 1) noexcept;                       // [0, 1]
  Chain& typical_p(float p, std::size_t min_keep = 1) noexcept;                   // (0, 1]
  Chain& top_n_sigma(float n) noexcept;                                           // > 0
  Chain& penalties(const PenaltyOptions& options) noexcept;
  Chain& logit_bias(std::span<const TokenBias> biases) noexcept;
  Chain& logit_bias(std::initializer_list<TokenBias> biases) noexcept {
    return logit_bias({biases.begin(), biases.size()});
  }
  Chain& allow(std::span<const Token> tokens) noexcept;                           // these and no others
  Chain& allow(std::initializer_list<Token> tokens) noexcept { return allow({tokens.begin(), tokens.size()}); }
  Chain& deny(std::span<const Token> tokens) noexcept;                            // all but these
  Chain& deny(std::initializer_list<Token> tokens) noexcept { return deny({tokens.begin(), tokens.size()}); }
  Chain& xtc(const XtcOptions& options) noexcept;
  Chain& dry(const DryOptions& options) noexcept;
  Chain& mirostat(const MirostatOptions& options) noexcept;

  // A stage of your own: see stage.hpp for what it may have. Copied by Sampler::clone().
  template <class T>
    requires StageFunction<std::decay_t<T>>
  Chain& stage(T&& function) {
    using Function = std::decay_t<T>;
    if constexpr (requires(const Function& f) { { f.check() } -> std::same_as<Status>; }) {
      if (auto valid = function.check(); !valid) return fail(std::move(valid).error());
    }
    return add(std::unique_ptr<Stage>(new (std::nothrow) StageOf<Function>(std::forward<T>(function))));
  }
  Chain& stage(std::unique_ptr<Stage> stage) noexcept { return add(std::move(stage)); }

  // What the random numbers follow from. 0 unless given: the library takes no entropy by itself. `stream` tells apart
  // sequences that share a seed.
  Chain& seed(std::uint64_t seed, std::uint32_t stream = 0) noexcept;

  // Moves the stages out: a chain builds one sampler. With no stage it draws from the plain softmax.
  [[nodiscard]] Sampler build() noexcept;

 private:
  Chain& add(std::unique_ptr<Stage> stage) noexcept;
  Chain& fail(Error error) noexcept;

  std::unique_ptr<SamplerState> state_;
};

[[nodiscard]] inline Chain chain() noexcept { return Chain(); }

}  // namespace tessera::sampling

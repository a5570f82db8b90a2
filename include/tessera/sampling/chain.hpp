// A Chain builds a Sampler from stages. Stages run in the order in which they are written; the draw comes after the last stage.
//
//   auto sampler = tessera::sampling::chain().temperature(0.8f).top_p(0.95f).seed(42).build();
//
// A chain can also grow step by step:
//
//   auto made = tessera::sampling::chain();
//   if (cold) made.greedy();
//   auto sampler = made.build();
//
// An invalid option does not stop the chain. The error is returned later, by Sampler::status() and by each function of the Sampler that
// returns a Result.
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
#include <tessera/extend/sampling/stage.hpp>
#include <tessera/sampling/options.hpp>
#include <tessera/sampling/sampler.hpp>

namespace tessera::sampling {

class Chain {
 public:
  Chain() noexcept;
  Chain(Chain&&) noexcept;
  Chain& operator=(Chain&&) noexcept;
  ~Chain();

  // The stages. No stage changes the order of the candidates.
  //
  // Keeps only the candidate with the highest logit; among equal logits, the one with the lowest token id.
  Chain& greedy() & noexcept;
  // Divides every logit by the temperature; 0 is greedy. Ackley, Hinton, Sejnowski (1985), section 2.
  Chain& temperature(float temperature) & noexcept;
  // Divides every logit by a temperature that depends on the entropy H of the n candidates: low + (high - low) * (H / ln n)^exponent. So
  // the temperature is low where the model is certain, and high where it is not. By kalomaze (koboldcpp; llama.cpp's temp_ext has temp and
  // range instead: low = temp - range, high = temp + range).
  Chain& dynamic_temperature(const DynamicTemperatureOptions& options) & noexcept;
  // Keeps the k candidates with the highest logits (among equal logits, the lower token ids); 0 keeps all. Fan, Lewis, Dauphin (ACL 2018),
  // section 5.4.
  Chain& top_k(std::size_t k) & noexcept;
  // Keeps the best candidates, as few as possible, whose probabilities add up to at least p in (0, 1]. min_keep: candidates that stay in
  // any case. Holtzman et al. (ICLR 2020), section 3.1.
  Chain& top_p(float p, std::size_t min_keep = 1) & noexcept;
  // Keeps the candidates that are at least p times as probable as the best one, p in [0, 1]. Nguyen et al. (ICLR 2025), section 3.
  Chain& min_p(float p, std::size_t min_keep = 1) & noexcept;
  // Keeps the candidates whose surprise (-ln probability) is nearest to the distribution's entropy (the mean surprise), as few as possible,
  // so that their probabilities add up to at least p in (0, 1]. Meister et al. (TACL 2023).
  Chain& typical_p(float p, std::size_t min_keep = 1) & noexcept;
  // Keeps the candidates whose logit is at least the best logit minus n > 0 standard deviations of the candidates' logits. Tang et al. (ACL
  // 2025), algorithm 1.
  Chain& top_n_sigma(float n) & noexcept;
  // Changes the logit of each token that occurs among the last n counted tokens (PenaltyOptions). First, a positive logit is divided by
  // `repetition`, and any other logit is multiplied by it (Keskar et al. 2019, section 4.1). Then count * frequency + presence is
  // subtracted, where `count` is the number of the token's occurrences (OpenAI).
  Chain& penalties(const PenaltyOptions& options) & noexcept;
  // Adds a number to the logits of given tokens (OpenAI). Biases of the same token add up.
  Chain& logit_bias(std::span<const TokenBias> biases) & noexcept;
  Chain& logit_bias(std::initializer_list<TokenBias> biases) & noexcept {
    return logit_bias({biases.begin(), biases.size()});
  }
  Chain& allow(std::span<const Token> tokens) & noexcept;  // removes all other tokens
  Chain& allow(std::initializer_list<Token> tokens) & noexcept { return allow({tokens.begin(), tokens.size()}); }
  Chain& deny(std::span<const Token> tokens) & noexcept;   // removes these tokens
  Chain& deny(std::initializer_list<Token> tokens) & noexcept { return deny({tokens.begin(), tokens.size()}); }
  // "Exclude top choices": removes likely tokens, for more varied texts. Acts on a draw only with the chance XtcOptions::probability. Then,
  // of the tokens whose probability is at least `threshold`, only the least likely one stays; the more likely ones are removed. Weidmann
  // (text-generation-webui, pull request 6335).
  Chain& xtc(const XtcOptions& options) & noexcept;
  // "Don't repeat yourself": penalises a token that would continue a repeat. If the last n >= allowed_length counted tokens (DryOptions)
  // occurred before and were followed by token t, multiplier * base^(n - allowed_length) is subtracted from t's logit. Weidmann
  // (text-generation-webui, pull request 5677).
  Chain& dry(const DryOptions& options) & noexcept;
  // Mirostat, version 2: keeps the mean surprise (-log2 probability) of the drawn tokens near tau bits. It removes candidates whose
  // surprise is above a limit mu, and each accepted token changes mu: down if the token's surprise was above tau, up if it was below.
  // Usually the last stage. Basu et al. (ICLR 2021).
  Chain& mirostat(const MirostatOptions& options) & noexcept;

  // Adds a stage of your own; stage.hpp says which members a stage may have. Sampler::clone() copies the stage. If the pointer or function
  // is null, the Sampler returns an error.
  template <class T>
    requires StageFunction<std::decay_t<T>>
  Chain& stage(T&& function) & {
    using Function = std::decay_t<T>;
    if constexpr (requires { { function == nullptr } -> std::convertible_to<bool>; }) {
      if (function == nullptr) return stage(std::unique_ptr<Stage>());
    }
    if constexpr (requires(const Function& f) { { f.check() } -> std::same_as<Status>; }) {
      if (auto valid = function.check(); !valid) return fail(std::move(valid).error());
    }
    return add(std::unique_ptr<Stage>(new (std::nothrow) StageOf<Function>(std::forward<T>(function))));
  }
  Chain& stage(std::unique_ptr<Stage> stage) & noexcept;

  // Sets the seed of the random numbers. Default: 0, because the library takes no entropy by itself. Two sequences with the same seed draw
  // different random numbers if their `stream` differs.
  Chain& seed(std::uint64_t seed, std::uint32_t stream = 0) & noexcept;

  // The same functions for a temporary chain. They return the chain by value: auto usual = chain().top_k(40);
  Chain greedy() && noexcept { return std::move(greedy()); }
  Chain temperature(float t) && noexcept { return std::move(temperature(t)); }
  Chain dynamic_temperature(const DynamicTemperatureOptions& o) && noexcept { return std::move(dynamic_temperature(o)); }
  Chain top_k(std::size_t k) && noexcept { return std::move(top_k(k)); }
  Chain top_p(float p, std::size_t min_keep = 1) && noexcept { return std::move(top_p(p, min_keep)); }
  Chain min_p(float p, std::size_t min_keep = 1) && noexcept { return std::move(min_p(p, min_keep)); }
  Chain typical_p(float p, std::size_t min_keep = 1) && noexcept { return std::move(typical_p(p, min_keep)); }
  Chain top_n_sigma(float n) && noexcept { return std::move(top_n_sigma(n)); }
  Chain penalties(const PenaltyOptions& o) && noexcept { return std::move(penalties(o)); }
  Chain logit_bias(std::span<const TokenBias> biases) && noexcept { return std::move(logit_bias(biases)); }
  Chain logit_bias(std::initializer_list<TokenBias> biases) && noexcept { return std::move(logit_bias(biases)); }
  Chain allow(std::span<const Token> tokens) && noexcept { return std::move(allow(tokens)); }
  Chain allow(std::initializer_list<Token> tokens) && noexcept { return std::move(allow(tokens)); }
  Chain deny(std::span<const Token> tokens) && noexcept { return std::move(deny(tokens)); }
  Chain deny(std::initializer_list<Token> tokens) && noexcept { return std::move(deny(tokens)); }
  Chain xtc(const XtcOptions& o) && noexcept { return std::move(xtc(o)); }
  Chain dry(const DryOptions& o) && noexcept { return std::move(dry(o)); }
  Chain mirostat(const MirostatOptions& o) && noexcept { return std::move(mirostat(o)); }
  template <class T>
    requires StageFunction<std::decay_t<T>>
  Chain stage(T&& function) && {
    return std::move(stage(std::forward<T>(function)));
  }
  Chain stage(std::unique_ptr<Stage> own) && noexcept { return std::move(stage(std::move(own))); }
  Chain seed(std::uint64_t value, std::uint32_t stream = 0) && noexcept { return std::move(seed(value, stream)); }

  // Makes the sampler and moves the stages into it, so a chain builds only one sampler. A sampler without stages draws from the softmax of
  // the unchanged logits.
  [[nodiscard]] Sampler build() noexcept;

 private:
  Chain& add(std::unique_ptr<Stage> stage) noexcept;
  Chain& fail(Error error) noexcept;

  std::unique_ptr<SamplerState> state_;
};

[[nodiscard]] inline Chain chain() noexcept { return Chain(); }

}  // namespace tessera::sampling

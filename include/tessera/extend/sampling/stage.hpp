// One step of a sampler: a pure function of (candidates, history, position, seed). Transforming only: the draw comes
// after the last stage. Any copyable object that can be called as stage(candidates, context), returning nothing or a
// Status, is a stage; docs/add-a-sampler.md shows how.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tessera/core/result.hpp>
#include <tessera/extend/core/hash.hpp>
#include <tessera/extend/core/sample_steps.hpp>
#include <tessera/extend/sampling/candidates.hpp>
#include <tessera/extend/sampling/philox.hpp>

namespace tessera::sampling {

// What a stage may know besides the candidates.
struct Context {
  std::span<const Token> history;  // the tokens before the one being drawn, prompt included, oldest first
  std::uint64_t position = 0;      // the position of the token being drawn
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;        // tells apart sequences that share a seed
  std::uint32_t stage = 0;         // this stage's place in its chain from 1; 0 is the final draw
  std::size_t before_answer = 0;   // how many tokens of the history stand in front of the answer (Sampler::begin_answer())

  // The tokens of the history that have been drawn: the answer as far as it goes.
  [[nodiscard]] std::span<const Token> answer() const noexcept {
    return history.subspan(before_answer < history.size() ? before_answer : history.size());
  }

  // The stage's n-th random number at this position (n < 65536), uniform in [0, 1), a multiple of 2^-53. Always the
  // same for the same (seed, stream, stage, position, n): nothing is counted, so replay and roll-back need no state.
  [[nodiscard]] double uniform(std::uint32_t n = 0) const noexcept {
    return philox_uniform(seed, position, (stage << 16) | (n & 0xffffu), stream);
  }
};

class Stage {
 public:
  virtual ~Stage() = default;

  // May throw: the draw then fails with callback_failed and the sampler stays usable.
  virtual Status apply(Candidates& candidates, const Context& context) = 0;

  // Only for stages that remember. `probability` is what the final distribution gave the token, 0 where it is not known
  // (a token that was forced, or could not have been drawn). rollback(n) undoes the last n accepts.
  virtual Status accept(Token, float /*probability*/) { return {}; }
  virtual void rollback(std::size_t) noexcept {}
  // Whether accept() does anything: where no stage's does, the probability of the token is not looked up.
  [[nodiscard]] virtual bool remembers() const noexcept { return true; }

  // nullptr, or an exception, where there is no memory.
  [[nodiscard]] virtual std::unique_ptr<Stage> clone() const = 0;
  [[nodiscard]] virtual std::string_view name() const noexcept { return "custom stage"; }

  // Bytes with which the text must go on, whatever the logits are, as far as the stage knows (a grammar's does). They are
  // drafts for forced_drafter(), and nothing else follows from them.
  virtual Result<std::string> forced() { return std::string(); }

  // Returns whether the stage follows one text from its first token on, as a grammar does. Where another text begins,
  // Sampler::begin_text() takes such a stage back to its beginning.
  [[nodiscard]] virtual bool follows_text() const noexcept { return false; }
  // Returns whether the text that such a stage follows is whole, so that nothing can follow it.
  [[nodiscard]] virtual bool text_ended() const noexcept { return false; }
  // The fingerprint of the tokenizer (Tokenizer::fingerprint()) whose tokens the stage was made for; zero: it was made for none,
  // and serves all.
  [[nodiscard]] virtual Hash128 tokenizer() const noexcept { return {}; }

  // What apply() does, where that can be said in numbers: a backend may then do it instead (Sampler::recipe()).
  [[nodiscard]] virtual std::optional<SampleStep> step() const noexcept { return std::nullopt; }
};

template <class T>
concept StageFunction =
    std::copy_constructible<T> && (std::is_invocable_r_v<Status, T&, Candidates&, const Context&> ||
                                   std::is_void_v<std::invoke_result_t<T&, Candidates&, const Context&>>);

// Makes a Stage of a lambda or an object. Uses, where T has them: `Status check() const` (are the options valid?),
// `accept(Token, float)` (void or Status) with `rollback(std::size_t)`, `Result<std::string> forced()`, `SampleStep step() const`,
// `bool text_ended() const` (then it follows_text()), `Hash128 tokenizer() const`, and a static kName.
template <StageFunction T>
class StageOf final : public Stage {
 public:
  explicit StageOf(T function) : function_(std::move(function)) {}

  Status apply(Candidates& candidates, const Context& context) override {
    if constexpr (std::is_void_v<std::invoke_result_t<T&, Candidates&, const Context&>>) {
      function_(candidates, context);
      return {};
    } else {
      return function_(candidates, context);
    }
  }

  Status accept(Token token, float probability) override {
    if constexpr (requires { { function_.accept(token, probability) } -> std::same_as<Status>; }) {
      return function_.accept(token, probability);
    } else if constexpr (requires { function_.accept(token, probability); }) {
      function_.accept(token, probability);
    }
    return {};
  }

  void rollback(std::size_t n) noexcept override {
    if constexpr (requires { function_.rollback(n); }) function_.rollback(n);
  }

  [[nodiscard]] bool remembers() const noexcept override {
    return requires(T& f) { f.accept(Token{}, 0.0f); };
  }

  [[nodiscard]] bool follows_text() const noexcept override {
    return requires(const T& f) { { f.text_ended() } -> std::same_as<bool>; };
  }

  [[nodiscard]] bool text_ended() const noexcept override {
    if constexpr (requires { { function_.text_ended() } -> std::same_as<bool>; }) return function_.text_ended();
    return false;
  }

  [[nodiscard]] Hash128 tokenizer() const noexcept override {
    if constexpr (requires { { function_.tokenizer() } -> std::same_as<Hash128>; }) return function_.tokenizer();
    return {};
  }

  [[nodiscard]] std::unique_ptr<Stage> clone() const override {
    return std::unique_ptr<Stage>(new (std::nothrow) StageOf(function_));
  }

  [[nodiscard]] std::string_view name() const noexcept override {
    if constexpr (requires { T::kName; }) return T::kName;
    return Stage::name();
  }

  Result<std::string> forced() override {
    if constexpr (requires { { function_.forced() } -> std::same_as<Result<std::string>>; }) return function_.forced();
    return std::string();
  }

  [[nodiscard]] std::optional<SampleStep> step() const noexcept override {
    if constexpr (requires { { function_.step() } -> std::same_as<SampleStep>; }) return function_.step();
    return std::nullopt;
  }

 private:
  T function_;
};

}  // namespace tessera::sampling

// One stage of a sampler: a pure function of (candidates, history, position, seed). A stage only changes the candidates; the draw comes
// after the last stage. A stage is any copyable object that can be called as stage(candidates, context) and returns nothing or a Status.
// docs/contributing/add-a-sampler.md has more examples.
//
//   struct NoRepeat {                                             // forbids the last token
//     void operator()(sampling::Candidates& candidates, const sampling::Context& context) const {
//       if (context.history.empty()) return;
//       candidates.remove_if([&](const sampling::Candidate& one) { return one.token == context.history.back(); });
//     }
//   };
//   auto sampler = sampling::chain().stage(NoRepeat{}).seed(1).build();
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

// Everything that a stage can read besides the candidates.
struct Context {
  std::span<const Token> history;  // tokens before the token that is being drawn, prompt included, oldest first
  std::uint64_t position = 0;      // position of the token being drawn
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;        // distinguishes sequences with the same seed
  std::uint32_t stage = 0;         // index of this stage in its chain, from 1; 0 means the final draw
  std::size_t before_answer = 0;   // number of tokens of the history before the answer (Sampler::begin_answer())

  // Returns the tokens of the answer that have been drawn so far.
  [[nodiscard]] std::span<const Token> answer() const noexcept {
    return history.subspan(before_answer < history.size() ? before_answer : history.size());
  }

  // Returns the stage's n-th random number at this position (n < 65536), uniform in [0, 1), a multiple of 2^-53. The number depends only on
  // (seed, stream, stage, position, n). No counter is kept, so replaying and rolling back need no state.
  [[nodiscard]] double uniform(std::uint32_t n = 0) const noexcept {
    return philox_uniform(seed, position, (stage << 16) | (n & 0xffffu), stream);
  }
};

// The virtual interface of a stage. StageOf makes a Stage from any StageFunction.
class Stage {
 public:
  virtual ~Stage() = default;

  // Changes the candidates. May throw: the draw then fails with callback_failed, and the sampler stays usable.
  virtual Status apply(Candidates& candidates, const Context& context) = 0;

  // Tells the stage the text's next token (drawn or forced). Only stages with a memory of the text need this. `probability`: the token's
  // probability in the final distribution; 0 if it is not known, because the token was forced or could not have been drawn. rollback(n)
  // undoes the last n accept() calls.
  virtual Status accept(Token, float /*probability*/) { return {}; }
  virtual void rollback(std::size_t) noexcept {}
  // Returns whether accept() does anything. If it does nothing in all stages of a chain, the sampler does not look up the token's
  // probability.
  [[nodiscard]] virtual bool remembers() const noexcept { return true; }

  // Returns a copy. If there is no memory, returns nullptr or throws.
  [[nodiscard]] virtual std::unique_ptr<Stage> clone() const = 0;
  [[nodiscard]] virtual std::string_view name() const noexcept { return "custom stage"; }

  // Returns the bytes that must come next in the text whatever the logits are, as far as the stage (a grammar, for example) knows them.
  // forced_drafter() uses the bytes as drafts; they have no other effect.
  virtual Result<std::string> forced() { return std::string(); }

  // Returns whether the stage follows one text from the first token on, as a grammar does. When another text begins, Sampler::begin_text()
  // resets the stage to its beginning.
  [[nodiscard]] virtual bool follows_text() const noexcept { return false; }
  // Returns whether the text that the stage follows is complete, so that no token can follow.
  [[nodiscard]] virtual bool text_ended() const noexcept { return false; }
  // Returns the fingerprint (Tokenizer::fingerprint()) of the tokenizer whose tokens the stage was made for. Zero: the stage works with
  // every tokenizer.
  [[nodiscard]] virtual Hash128 tokenizer() const noexcept { return {}; }

  // Returns numbers that describe what apply() does, so that a backend can do the same without calling apply() (Sampler::recipe()). nullopt:
  // numbers cannot describe it.
  [[nodiscard]] virtual std::optional<SampleStep> step() const noexcept { return std::nullopt; }
};

template <class T>
concept StageFunction =
    std::copy_constructible<T> && (std::is_invocable_r_v<Status, T&, Candidates&, const Context&> ||
                                   std::is_void_v<std::invoke_result_t<T&, Candidates&, const Context&>>);

// Makes a Stage from a lambda or an object. Uses the following members if T has them: `Status check() const` (checks the options),
// `accept(Token, float)` (returns void or Status) with `rollback(std::size_t)`, `Result<std::string> forced()`, `SampleStep step() const`,
// `bool text_ended() const` (follows_text() is then true), `Hash128 tokenizer() const`, and a static kName.
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

// The target of a drafter: the model and the sequence for which tokens are drafted. A drafter may let a part of the target model guess,
// over the target's own keys and values: its draft heads, or its first layers alone.
//
//   class ByHeads final : public tessera::Drafter {
//    public:
//     tessera::Result<std::unique_ptr<tessera::Drafter>> start(const tessera::Engine&) const override {
//       return std::unique_ptr<tessera::Drafter>(new ByHeads);
//     }
//     tessera::Result<std::size_t> propose(const tessera::DraftContext& context, std::span<tessera::Token> out) override {
//       if (context.target.hidden().empty()) return 0;
//       hidden_.resize(context.target.hidden().size());
//       logits_.resize(context.target.engine().spec().vocab_size);
//       auto guesses = context.target.guess_by_heads(out.size(), hidden_);
//       if (!guesses) return 0;  // no room, or more than one token is pending
//       tessera::Token last = context.history.back();
//       for (tessera::Token& draft : out) {
//         if (auto status = guesses->next(last, logits_, context.stop); !status) return status.error();
//         last = draft = tessera::Token(std::max_element(logits_.begin(), logits_.end()) - logits_.begin());
//       }
//       return out.size();
//     }
//    private:
//     std::vector<float> hidden_, logits_;
//   };
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/session.hpp>

namespace tessera {

// A series of guesses of the target model, one for each further position. The series ends when a guess fails, and when another series of
// the same target begins. Use a series only within the call of Drafter::propose() in which it began.
class TargetGuesses {
 public:
  TargetGuesses() noexcept = default;  // an empty handle (docs/headers.md)

  // Computes the logits of the token behind `token`, and writes them to `logits`  [vocab]. Call it first with the last token of the
  // history, then with each draft. Errors: invalid_argument, a token that does not follow, or a span of another size;
  // invalid_state, there were `most` guesses, or the guesses have ended; cache_full and out_of_memory, no room for the row; cancelled.
  Status next(Token token, std::span<float> logits, const std::stop_token& stop = {}) noexcept;

 private:
  friend class DraftTarget;
  Status guess(Token token, std::span<float> logits, const std::stop_token& stop);

  Session::State* session_ = nullptr;
  std::uint64_t number_ = 0;  // this series' number. If it is not Session::State::guesses, the series has ended; 0: by an error
  std::uint32_t layers_ = 0;  // layers that guess; 0: the draft heads
  std::size_t most_ = 0, done_ = 0;  // guesses at most, and so far
  std::span<float> hidden_;   // the hidden state that the heads read next
};

// The target of one call of Drafter::propose() (DraftContext::target). The library makes a DraftTarget for each call, and it is valid until
// the call returns. Guesses do not change the sequence: their keys and values lie behind its end, where the next step overwrites them.
class DraftTarget {
 public:
  DraftTarget() noexcept = default;  // an empty handle (docs/headers.md)
  explicit DraftTarget(Session::State& session) noexcept : session_(&session) {}

  [[nodiscard]] const Engine& engine() const noexcept;
  // Returns how many tokens of the history have keys and values. The tokens behind them are pending: the next step computes them.
  [[nodiscard]] std::size_t computed() const noexcept;
  // Returns the hidden state behind the last computed token, as the model's draft heads read it. MTP, Medusa and EAGLE
  // heads read it behind the final norm; an EAGLE-3 head reads a mixture of three layers' inputs  [d_model]. Empty: nothing is computed, or
  // the engine has no draft heads (EngineOptions::mtp, EngineOptions::draft_heads).
  [[nodiscard]] std::span<const float> hidden() const noexcept;

  // Begins up to `most` guesses by the model's draft heads. They begin with the hidden state hidden(), and keep their own hidden state in
  // the span `hidden`, which must have the same size and outlive the guesses. Errors: invalid_state, the engine has no draft heads, or not
  // exactly one token is pending behind computed tokens; invalid_argument, `hidden` has another size, or `most` is above
  // DraftHeadSpec::most_guesses; cache_full and out_of_memory, no
  // room for `most` rows.
  [[nodiscard]] Result<TargetGuesses> guess_by_heads(std::size_t most, std::span<float> hidden) const noexcept;
  // Begins guesses by the model's first `layers` layers and its output. Errors: those of check_layers(); invalid_state, no token is
  // pending.
  [[nodiscard]] Result<TargetGuesses> guess_by_layers(std::uint32_t layers) const noexcept;
  // Checks that the model's first `layers` layers can guess. Errors: invalid_argument, unless 1 <= `layers` < the model's layers;
  // unsupported, the model has recurrent layers.
  [[nodiscard]] static Status check_layers(const Engine& engine, std::uint32_t layers) noexcept;

 private:
  Session::State* session_ = nullptr;
};

}  // namespace tessera

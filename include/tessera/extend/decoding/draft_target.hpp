// The target of a drafter: the model and the sequence for which the drafter guesses tokens. A drafter may let a part of the target model
// guess, with the target's own keys and values: the model's draft heads, or only its first layers.
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

// A series of guesses of the target model, one for each further position. The series ends when a guess fails, or when another series of the
// same target begins. Use a series only during the call of Drafter::propose() that began the series.
class TargetGuesses {
 public:
  TargetGuesses() noexcept = default;  // an empty handle (docs/headers.md)

  // Computes the logits of the token after `token`, and writes them to `logits`  [vocab]. Call it first with the last token of the history,
  // then with each draft. Errors: invalid_argument, `token` is not in the vocabulary, the first `token` is not the history's last token, or
  // `logits` has another size; invalid_state, `most` guesses have been made, or the series has ended; cache_full and out_of_memory, there
  // is no memory for the row; cancelled.
  Status next(Token token, std::span<float> logits, const std::stop_token& stop = {}) noexcept;

 private:
  friend class DraftTarget;
  Status guess(Token token, std::span<float> logits, const std::stop_token& stop);

  Session::State* session_ = nullptr;
  std::uint64_t number_ = 0;  // this series' number; 0: an error ended the series. It has also ended if Session::State::guesses differs
  std::uint32_t layers_ = 0;  // number of the model's first layers that guess; 0: the draft heads guess
  std::size_t most_ = 0, done_ = 0;  // limit of guesses, and guesses made
  std::span<float> hidden_;   // the hidden state that the heads read next
};

// The target of one call of Drafter::propose() (DraftContext::target). The library makes a DraftTarget for each call; it is valid until the
// call returns. Guesses do not change the sequence: their keys and values lie after its end, where the next step overwrites them.
class DraftTarget {
 public:
  DraftTarget() noexcept = default;  // an empty handle (docs/headers.md)
  explicit DraftTarget(Session::State& session) noexcept : session_(&session) {}

  [[nodiscard]] const Engine& engine() const noexcept;
  // Returns how many tokens of the history have keys and values. Later tokens are pending: the next step computes them.
  [[nodiscard]] std::size_t computed() const noexcept;
  // Returns the hidden state after the last computed token, as the model's draft heads read it  [d_model]: for MTP, Medusa and EAGLE heads
  // the output of the final norm; for an EAGLE-3 head a mixture of the inputs of three layers. Empty if no token is computed, or if the
  // engine has no draft heads (EngineOptions::mtp, EngineOptions::draft_heads).
  [[nodiscard]] std::span<const float> hidden() const noexcept;

  // Begins a series of up to `most` guesses by the model's draft heads. The first guess reads hidden(). The span `hidden` holds the heads'
  // own hidden state between guesses: it must have the size of hidden() and outlive the series. Errors: invalid_state, the engine has no
  // draft heads, or not exactly one token is pending after computed tokens; invalid_argument, `hidden` has another size, or `most` is above
  // DraftHeadSpec::most_guesses; cache_full and out_of_memory, there is no memory for `most` rows.
  [[nodiscard]] Result<TargetGuesses> guess_by_heads(std::size_t most, std::span<float> hidden) const noexcept;
  // Begins a series of guesses by the model's first `layers` layers, followed by its output matrix. Errors: those of check_layers();
  // invalid_state, no token is pending.
  [[nodiscard]] Result<TargetGuesses> guess_by_layers(std::uint32_t layers) const noexcept;
  // Checks that the model's first `layers` layers can guess. Errors: invalid_argument, `layers` is 0, or not below the model's number of
  // layers; unsupported, the model has recurrent layers.
  [[nodiscard]] static Status check_layers(const Engine& engine, std::uint32_t layers) noexcept;

 private:
  Session::State* session_ = nullptr;
};

}  // namespace tessera

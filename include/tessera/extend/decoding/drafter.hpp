// A drafter guesses the tokens that come next, so that one step can compute several tokens (SpeculateOptions). The generated tokens do not
// depend on the drafter: drafts that the sampler does not draw are thrown away.
//
// The library has drafters of its own (decoding/drafters.hpp). An example of your own drafter:
//
//   class Again : public tessera::Drafter {  // guesses that the last token comes again
//    public:
//     tessera::Result<std::unique_ptr<tessera::Drafter>> start(const tessera::Engine&) const override {
//       return std::unique_ptr<tessera::Drafter>(new Again);
//     }
//     tessera::Result<std::size_t> propose(const tessera::DraftContext& context, std::span<tessera::Token> out) override {
//       out[0] = context.history.back();
//       return 1;
//     }
//   };
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/decoding/draft_target.hpp>
#include <tessera/sampling/sampler.hpp>

namespace tessera {

// Everything that a drafter can read when it guesses.
struct DraftContext {
  std::span<const Token> history = {};  // tokens of the sequence, prompt included; drafts follow the last one
  std::uint64_t position = 0;           // position of the first draft, for Sampler::sample(); each later draft's position is one higher
  // The request's sampler. A drafter that computes logits should draw from them with this sampler: the draft and the target's token are
  // then drawn with the same random numbers, so the two agree more often than by chance. If the drafter calls Sampler::accept(), it must
  // roll back these tokens before it returns or throws.
  Sampler* sampler = nullptr;
  std::stop_token stop = {};
  DraftTarget target = {};              // the model and the sequence, for drafters that let a part of the model guess
  std::size_t branches = 1;             // limit of chains in a tree (propose_tree())
};

// The value of TreeDraft::parent for a draft that directly follows the history.
inline constexpr std::size_t kNoDraft = ~std::size_t{0};
// A draft of a tree.
struct TreeDraft {
  Token token = 0;
  std::size_t parent = kNoDraft;  // index of the draft before this draft, or kNoDraft
};

// The changes of a sequence since the last observe().
struct DraftOutcome {
  std::span<const Token> history = {};
  // Number of new tokens at the history's end. If all tokens of the history are new, this is the first call, or a stream has removed
  // tokens: discard all knowledge of the sequence.
  std::size_t added = 0;
  std::size_t drafted = 0;   // drafts that were in the step
  std::size_t accepted = 0;  // number of drafts that the sampler drew: the first drafts of a chain, or the drafts along one path of a tree
  // The token that the model finds likeliest after each draft  [drafted]. Drafts that the sampler did not draw have such a token too, so a
  // drafter can learn from wrong drafts. If a backend draws the tokens: the token that it drew after each draft. Empty for trees, and if
  // wants_guesses() returns false.
  std::span<const Token> guesses = {};
};

// Guesses the next tokens of a sequence. start() makes a new drafter for each generation. Threads: one at a time. A drafter may throw: the
// generation then goes on without drafts, and Generation::drafting() returns the error.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // Makes a drafter for a request on this engine. An error ends the generation before it begins.
  [[nodiscard]] virtual Result<std::unique_ptr<Drafter>> start(const Engine& target) const = 0;

  // Writes drafts to the beginning of `out`, the next token first, and returns the number of drafts; 0 for none. `out` is not empty. A
  // draft that is not in the vocabulary is ignored, with all later drafts.
  virtual Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) = 0;

  // Writes a tree of drafts to `out`, and returns the number of drafts. Called instead of propose() if the request allows trees
  // (SpeculateOptions::branches). The tree consists of at most context.branches chains, which may have their first drafts in common. Order
  // of the drafts: a parent comes before its children, and its likeliest child comes before its other children. A step may use only the
  // first drafts of the list. Default: one chain, from propose().
  virtual Result<std::size_t> propose_tree(const DraftContext& context, std::span<TreeDraft> out) {
    std::vector<Token> chain(out.size());
    Result<std::size_t> n = propose(context, chain);
    for (std::size_t i = 0; n && i < out.size() && i < *n; ++i) out[i] = {.token = chain[i], .parent = i == 0 ? kNoDraft : i - 1};
    return n;
  }

  // Tells the drafter how the sequence has changed. Called before each propose(), and at the generation's end, also if the caller ends the
  // generation early. If a step failed, `added` and `accepted` are 0.
  virtual void observe(const DraftOutcome&) {}

  // Returns whether observe() wants DraftOutcome::guesses.
  [[nodiscard]] virtual bool wants_guesses() const noexcept { return false; }

  // Returns an estimate of the seconds that proposing n drafts takes, used until the time has been measured.
  [[nodiscard]] virtual double cost(std::size_t /*n*/) const noexcept { return 0.0; }
};

}  // namespace tessera

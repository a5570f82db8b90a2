// A drafter guesses the tokens that come next, so that one step can compute several (SpeculateOptions). The tokens of the generation are
// the same whatever a drafter guesses: drafts that the sampler does not draw are thrown away.
//
// The library has drafters (decoding/drafters.hpp). Example of your own:
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

// Everything that a drafter may know.
struct DraftContext {
  std::span<const Token> history = {};  // tokens of the sequence, prompt included; drafts follow the last one
  std::uint64_t position = 0;           // position of the first draft, for Sampler::sample(); the next draft's is one more
  // The request's sampler. A drafter that has logits draws from them with this sampler, and so with the same random numbers as the
  // target's draw: the two agree more often than by chance. The drafter must roll back what the sampler accepts before it returns
  // or throws.
  Sampler* sampler = nullptr;
  std::stop_token stop = {};
  DraftTarget target = {};              // the model and the sequence, for drafters that have a part of the model guess
  std::size_t branches = 1;             // chains that a tree may have (propose_tree())
};

// The parent of a draft that follows the history's last token.
inline constexpr std::size_t kNoDraft = ~std::size_t{0};
// A draft of a tree.
struct TreeDraft {
  Token token = 0;
  std::size_t parent = kNoDraft;  // index of the draft before it, or kNoDraft
};

// The changes of a sequence since the last call.
struct DraftOutcome {
  std::span<const Token> history = {};
  // Number of new tokens at the history's end. If all tokens of the history are new, this is the first call, or a stream was cut: forget
  // what you know of the sequence.
  std::size_t added = 0;
  std::size_t drafted = 0;   // drafts that were in the step
  std::size_t accepted = 0;  // drafts that the sampler drew: the first ones of a chain, or along one path of a tree
  // If wants_guesses(): the token that the model finds likeliest after each draft, whether the draft was right or wrong  [drafted]. If a
  // backend draws tokens: the tokens that it drew. Empty for trees.
  std::span<const Token> guesses = {};
};

// Guesses the next tokens of a sequence. start() makes a drafter for each generation, which one thread uses at a time. A drafter may
// throw: Generation::drafting() then has the error, and the generation goes on without drafts.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // Makes a drafter for a request on this engine. An error ends the generation before it begins.
  [[nodiscard]] virtual Result<std::unique_ptr<Drafter>> start(const Engine& target) const = 0;

  // Writes drafts to the beginning of `out`, the next token first, and returns their number. `out` is not empty. To draft nothing, return
  // 0. A token that is not in the vocabulary ends the drafts.
  virtual Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) = 0;

  // Writes a tree of drafts, and returns their number; called if the request allows trees (SpeculateOptions::branches). The tree has at
  // most context.branches chains, which share their beginnings. Parents come before their children, and a parent's likeliest child comes
  // before its other children; a step may use only the first drafts of the list. Default: the chain of propose().
  virtual Result<std::size_t> propose_tree(const DraftContext& context, std::span<TreeDraft> out) {
    std::vector<Token> chain(out.size());
    Result<std::size_t> n = propose(context, chain);
    for (std::size_t i = 0; n && i < out.size() && i < *n; ++i) out[i] = {.token = chain[i], .parent = i == 0 ? kNoDraft : i - 1};
    return n;
  }

  // Tells the drafter what has happened. Called before each propose(), and when the generation ends or its caller stops early. After a step
  // that failed, nothing is added and nothing accepted.
  virtual void observe(const DraftOutcome&) {}

  // Returns whether observe() wants DraftOutcome::guesses.
  [[nodiscard]] virtual bool wants_guesses() const noexcept { return false; }

  // Returns an estimate of the seconds that proposing n drafts takes, used until the time has been measured.
  [[nodiscard]] virtual double cost(std::size_t /*n*/) const noexcept { return 0.0; }
};

}  // namespace tessera

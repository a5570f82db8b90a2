// A drafter guesses the tokens that come next, so that one step can compute several (SpeculateOptions). Whatever it says,
// the tokens of the generation are the same: what the sampler does not draw is thrown away.
//
// The library has some (drafters.hpp). One of your own:
//
//   class Again : public tessera::Drafter {  // that the last token comes again
//    public:
//     Result<std::unique_ptr<Drafter>> start(const Engine&) const override { return std::unique_ptr<Drafter>(new Again); }
//     Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) override {
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
#include <tessera/sampling/sampler.hpp>
#include <tessera/session.hpp>

namespace tessera {

struct DraftContext {
  std::span<const Token> history = {};  // the sequence, prompt included; the drafts are to follow its last token
  std::uint64_t position = 0;           // of the first draft, for Sampler::sample(); the second's is one more
  // The request's own. A drafter that has logits draws from them with it, and so with the random numbers that the
  // target's draw will have: the two agree more often than by chance. What it accepts it rolls back before it returns or throws.
  Sampler* sampler = nullptr;
  std::stop_token stop = {};
  Session::State* session = nullptr;    // the target's, for the library's own drafters
  std::size_t branches = 1;             // ends that a tree may have (propose_tree())
};

// A draft of a tree. The parents of drafts that follow the history's last token: kNoDraft.
inline constexpr std::size_t kNoDraft = ~std::size_t{0};
struct TreeDraft {
  Token token = 0;
  std::size_t parent = kNoDraft;  // index of the draft before it
};

// What has become of a sequence since the last call.
struct DraftOutcome {
  std::span<const Token> history = {};
  // So many tokens at the history's end are new. All of them: it is the first call, or a stream was cut, and what was
  // known of the sequence is void.
  std::size_t added = 0;
  std::size_t drafted = 0;   // that were in the step
  std::size_t accepted = 0;  // the first ones, that the sampler drew; of a tree those of one path
  // Of a drafter that wants them: the token that the model finds likeliest after each of those drafts, right or wrong (where a
  // backend draws: what it drew there)  [drafted]; none of a tree.
  std::span<const Token> guesses = {};
};

// Each generation has one of its own, which start() makes; it is used by one thread at a time. It may throw: the error is
// Generation::drafting() then, and the generation goes on without drafts.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // One for a request on this engine, which has seen nothing. An error ends the generation before it begins.
  [[nodiscard]] virtual Result<std::unique_ptr<Drafter>> start(const Engine& target) const = 0;

  // Writes drafts to the beginning of `out`, which is not empty, the next token first; how many. None is a fine answer.
  // What is not in the vocabulary ends them.
  virtual Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) = 0;

  // The same as a tree, which is asked for where the request allows one (SpeculateOptions::branches): at most context.branches
  // chains, which share their beginnings. Parents come before their children, of a parent's children the likeliest first; of
  // all drafts a step may have the first ones alone. Who has no trees proposes a chain.
  virtual Result<std::size_t> propose_tree(const DraftContext& context, std::span<TreeDraft> out) {
    std::vector<Token> chain(out.size());
    Result<std::size_t> n = propose(context, chain);
    for (std::size_t i = 0; n && i < out.size() && i < *n; ++i) out[i] = {.token = chain[i], .parent = i == 0 ? kNoDraft : i - 1};
    return n;
  }

  // Called before each propose(), and when the generation ends or is left. After a step that failed nothing is added
  // and nothing accepted.
  virtual void observe(const DraftOutcome&) {}

  // Whether observe() is to have DraftOutcome::guesses.
  [[nodiscard]] virtual bool wants_guesses() const noexcept { return false; }

  // Seconds that it takes to propose n, as far as it can say before that has been measured.
  [[nodiscard]] virtual double cost(std::size_t /*n*/) const noexcept { return 0.0; }
};

}  // namespace tessera

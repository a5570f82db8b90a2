// A Matcher follows one text through a grammar, and tells which tokens may come next. A copy is a fork: it has accepted the same tokens,
// and both then go on independently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/sampling/stage.hpp>
#include <tessera/grammar/compiled.hpp>

namespace tessera {

namespace grammar {
struct MaskCache;
}

// Follows one text token by token. A function that returns an error changes nothing. Threads: one at a time for one matcher; several
// threads may use different matchers of the same grammar.
//
//   auto matcher = Matcher::create(*compiled);
//   auto sampler = sampling::chain().stage(sampling::GrammarStage{*matcher}).temperature(0.8f).seed(1).build();
//   for (const auto& piece : session.generate(sampler)) std::fputs(piece->text.c_str(), stdout);
class Matcher {
 public:
  Matcher() noexcept = default;  // an empty handle (docs/headers.md)
  [[nodiscard]] static Result<Matcher> create(const CompiledGrammar& grammar) noexcept;

  // Returns the tokens that may come next, as a set of bits: bit t % 64 of word t / 64 is 1 if token t is allowed. End tokens are allowed
  // exactly if the text may end here. The span is valid until the next call of this matcher. Errors: numeric, the vocabulary has no token
  // that could come next; over_budget, the work or the memory would pass a limit (GrammarLimits).
  [[nodiscard]] Result<std::span<const std::uint64_t>> mask() noexcept;
  // Adds a token to the text. Errors: invalid_argument, the token may not come next; over_budget, as above.
  [[nodiscard]] Status accept(Token token) noexcept;
  // Undoes the last n accept() calls. Errors: invalid_argument, fewer than n tokens were accepted.
  [[nodiscard]] Status rollback(std::size_t n) noexcept;
  // Returns how many tokens at the beginning of `draft` the grammar allows one after another. Does not change the text.
  [[nodiscard]] Result<std::size_t> check(std::span<const Token> draft) noexcept;
  // Returns the bytes that must come next, because the grammar allows nothing else; at most `limit` bytes. The last character may be
  // incomplete.
  [[nodiscard]] Result<std::string> forced(std::size_t limit = 256) noexcept;
  [[nodiscard]] Status status() const noexcept;  // invalid_state: the handle is empty
  [[nodiscard]] Hash128 tokenizer() const noexcept;  // GrammarVocabulary::tokenizer()
  [[nodiscard]] bool may_end() const noexcept;
  [[nodiscard]] bool ended() const noexcept;  // an end token was accepted
  [[nodiscard]] std::size_t accepted() const noexcept { return states_.empty() ? 0 : states_.size() - 1; }

 private:
  Matcher(std::shared_ptr<const grammar::Compiled> grammar, std::shared_ptr<grammar::MaskCache> cache);

  std::shared_ptr<const grammar::Compiled> grammar_;
  std::shared_ptr<grammar::MaskCache> cache_;
  std::vector<std::uint32_t> states_;  // [accepted + 1]
  std::vector<std::uint64_t> mask_;
};

namespace sampling {

// A matcher as the first stage of a chain: chain().stage(GrammarStage{matcher}).temperature(0.8f)... A stage follows one text at a time.
// When another text begins (Sampler::begin_text()), the matcher returns to the state in which it was put into the chain.
struct GrammarStage {
  static constexpr std::string_view kName = "grammar";
  Matcher matcher;

  Status operator()(Candidates& candidates, const Context&) {
    auto mask = matcher.mask();
    if (!mask) return std::move(mask).error();
    const std::span<const std::uint64_t> words = *mask;
    candidates.remove_if([words](const Candidate& candidate) {
      const auto token = static_cast<std::size_t>(candidate.token);
      return token / 64 >= words.size() || (words[token / 64] >> (token % 64) & 1) == 0;
    });
    return {};
  }
  Status check() const { return matcher.status(); }
  [[nodiscard]] Hash128 tokenizer() const noexcept { return matcher.tokenizer(); }
  [[nodiscard]] bool text_ended() const noexcept { return matcher.ended(); }
  Status accept(Token token, float) { return matcher.accept(token); }
  void rollback(std::size_t n) noexcept { static_cast<void>(matcher.rollback(n)); }
  Result<std::string> forced() { return matcher.forced(); }
};

}  // namespace sampling

}  // namespace tessera

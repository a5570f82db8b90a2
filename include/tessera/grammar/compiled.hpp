// A grammar together with a vocabulary: immutable, shared by all requests that use it. What matching finds out is kept in
// a cache inside, under a lock, so that the second request finds it warm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/core/hash.hpp>
#include <tessera/grammar/grammar.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera {

namespace grammar {
struct TokenTrie;
struct Compiled;
}  // namespace grammar

// The bytes of a vocabulary's tokens, arranged for masks. Made once a tokenizer (some 100 ms for 128k tokens); copies
// share it.
class GrammarVocabulary {
 public:
  GrammarVocabulary() noexcept = default;  // an empty handle (docs/headers.md)
  [[nodiscard]] static Result<GrammarVocabulary> create(const Tokenizer& tokenizer) noexcept;
  // tokens: what each adds to a text, nothing for those that are never part of one (control tokens). ends: those that
  // end it. tokenizer: the fingerprint of the Tokenizer whose tokens these are, if there is one: a sampler with a grammar of
  // another tokenizer than its engine's is refused.
  [[nodiscard]] static Result<GrammarVocabulary> create(std::span<const std::string> tokens, std::span<const Token> ends,
                                                        const Hash128& tokenizer = {}) noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
  [[nodiscard]] std::string_view bytes(Token token) const noexcept;
  [[nodiscard]] Hash128 tokenizer() const noexcept;  // its fingerprint; zero: not known

  struct State;
  [[nodiscard]] const State* state() const noexcept { return state_.get(); }  // for the library itself; nullptr: empty

 private:
  explicit GrammarVocabulary(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

// What bounds matching; an operation that would pass a limit is an error (over_budget) and changes nothing.
struct GrammarLimits {
  std::size_t memory_bytes = std::size_t{48} << 20;  // of the states that matching has found
  std::uint64_t step_work = 500'000;               // elementary steps of one mask or accepted token
};

// Where a text stops being one of the grammar's.
struct TextCheck {
  bool accepted = false;
  std::size_t at = 0;      // the byte that cannot be there, or the text's size where it should go on
  std::string expected;    // what could be there instead, for people
};

class CompiledGrammar {
 public:
  CompiledGrammar() noexcept = default;  // an empty handle (docs/headers.md)
  // Errors: a grammar that allows no text; over_budget.
  [[nodiscard]] static Result<CompiledGrammar> create(const Grammar& grammar, const GrammarVocabulary& vocabulary,
                                                      const GrammarLimits& limits = {}) noexcept;
  [[nodiscard]] Result<TextCheck> check(std::string_view text) const noexcept;
  [[nodiscard]] const GrammarVocabulary& vocabulary() const noexcept;
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  friend class Matcher;
  explicit CompiledGrammar(std::shared_ptr<const grammar::Compiled> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<const grammar::Compiled> state_;
};

}  // namespace tessera

// A cache of compiled grammars: a second request with the same schema does not compile it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tessera/core/result.hpp>
#include <tessera/grammar/compiled.hpp>
#include <tessera/grammar/grammar.hpp>

namespace tessera {

// A grammar as a request states it: the text of a schema, a regular expression or EBNF.
struct GrammarSource {
  enum class Kind : std::int32_t { json_schema = 0, regex = 1, ebnf = 2 };
  Kind kind;
  std::string_view text;
  JsonSchemaOptions options = {};  // used only with json_schema

  // Returns a key of the source. Two sources have the same key exactly if they are equal.
  [[nodiscard]] std::string key() const;
};

// A cache that finds compiled grammars by their source. It holds at most Options::entries grammars in at most Options::memory_bytes. A full
// cache drops the grammar whose last get() is longest ago. Exception: the grammar of the last get() always stays, even if it is larger than
// memory_bytes. Requests that use a dropped grammar keep it alive. Threads: several may call get() at once; if two need the same new
// grammar, both may compile it.
//
//   auto vocabulary = GrammarVocabulary::create(engine.tokenizer());
//   auto cache = GrammarCache::create(*vocabulary, {.entries = 100});
//   auto grammar = cache->get({.kind = GrammarSource::Kind::regex, .text = "[0-9]{1,3}"});
//   auto matcher = Matcher::create(*grammar);                       // extend/grammar/matcher.hpp
class GrammarCache {
 public:
  struct Options {
    std::size_t entries = 256;
    std::size_t memory_bytes = std::size_t{1} << 30;
    GrammarLimits limits = {};
  };
  [[nodiscard]] static Result<GrammarCache> create(const GrammarVocabulary& vocabulary, const Options& options) noexcept;
  GrammarCache() noexcept;  // an empty handle (docs/headers.md)
  GrammarCache(GrammarCache&&) noexcept;
  GrammarCache& operator=(GrammarCache&&) noexcept;
  ~GrammarCache();

  // Returns the compiled grammar of `source`; compiles the source if the cache does not have it. Errors: those of Grammar and
  // CompiledGrammar::create(). An error is not cached: the next call compiles again.
  [[nodiscard]] Result<CompiledGrammar> get(const GrammarSource& source) noexcept;
  [[nodiscard]] std::size_t size() const noexcept;

 private:
  struct State;
  explicit GrammarCache(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace tessera

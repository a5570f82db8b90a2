#include <tessera/extend/grammar/cache.hpp>

#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/empty.hpp"
#include "grammar/fuel.hpp"

namespace tessera {

using grammar::guard_fuel;

std::string JsonSchemaOptions::key() const {
  const auto [a, b, c, d, e] = *this;  // names all fields: after a field is added, this does not compile until the key has it
  std::string key;
  for (const std::int32_t part : {static_cast<std::int32_t>(a), static_cast<std::int32_t>(b), static_cast<std::int32_t>(c),
                                  static_cast<std::int32_t>(d), static_cast<std::int32_t>(e)}) {
    key += std::to_string(part) + ' ';
  }
  return key;
}

std::string GrammarSource::key() const {
  const auto& [a, b, c] = *this;
  return std::to_string(static_cast<std::int32_t>(a)) + ' ' + c.key() + std::string(b);
}

struct GrammarCache::State {
  struct Entry {
    std::string key;
    CompiledGrammar grammar;
  };
  GrammarVocabulary vocabulary;
  Options options;
  std::mutex lock;
  std::list<Entry> entries;  // the most recently used entry comes first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index;  // finds an entry by its key; the key's text is in the entry

  // Drops the least recently used entries while the cache has more entries, or takes more memory, than its options allow. Exception: the
  // most recently used entry always stays. The memory of each grammar is counted anew, because a grammar grows while matchers use it.
  void shrink() {
    std::size_t bytes = 0, kept = 0;
    for (auto at = entries.begin(); at != entries.end();) {
      bytes += at->grammar.memory_bytes() + at->key.size();
      if (kept > 0 && (kept >= options.entries || bytes > options.memory_bytes)) {
        index.erase(at->key);
        at = entries.erase(at);
      } else {
        ++kept;
        ++at;
      }
    }
  }
};

GrammarCache::GrammarCache(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
GrammarCache::GrammarCache() noexcept = default;
GrammarCache::GrammarCache(GrammarCache&&) noexcept = default;
GrammarCache& GrammarCache::operator=(GrammarCache&&) noexcept = default;
GrammarCache::~GrammarCache() = default;

Result<GrammarCache> GrammarCache::create(const GrammarVocabulary& vocabulary, const Options& options) noexcept {
  return guard_fuel([&]() -> Result<GrammarCache> {
    if (vocabulary.state() == nullptr) return detail::empty_handle("GrammarVocabulary");
    return GrammarCache(std::unique_ptr<State>(new State{vocabulary, options, {}, {}, {}}));
  });
}

Result<CompiledGrammar> GrammarCache::get(const GrammarSource& source) noexcept {
  return guard_fuel([&]() -> Result<CompiledGrammar> {
    if (state_ == nullptr) return detail::empty_handle("GrammarCache");
    std::string key = source.key();
    {
      const std::scoped_lock hold(state_->lock);
      if (const auto found = state_->index.find(key); found != state_->index.end()) {
        state_->entries.splice(state_->entries.begin(), state_->entries, found->second);
        return found->second->grammar;
      }
    }
    TESSERA_TRY(const Grammar grammar, source.kind == GrammarSource::Kind::regex  ? Grammar::regex(source.text)
                                       : source.kind == GrammarSource::Kind::ebnf ? Grammar::ebnf(source.text)
                                                                                  : Grammar::json_schema(source.text, source.options));
    TESSERA_TRY(CompiledGrammar compiled, CompiledGrammar::create(grammar, state_->vocabulary, state_->options.limits));
    const std::scoped_lock hold(state_->lock);
    if (const auto found = state_->index.find(key); found != state_->index.end()) return found->second->grammar;
    std::list<State::Entry> made;
    made.push_front({std::move(key), compiled});
    state_->index.emplace(made.front().key, made.begin());  // if this throws, the entry is in neither the index nor the list
    state_->entries.splice(state_->entries.begin(), made);
    state_->shrink();
    return compiled;
  });
}

std::size_t GrammarCache::size() const noexcept {
  if (state_ == nullptr) return 0;
  const std::scoped_lock hold(state_->lock);
  return state_->entries.size();
}

}  // namespace tessera

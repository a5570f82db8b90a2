#include "grammar/compiled.hpp"

#include <fmt/format.h>

#include "core/empty.hpp"
#include "core/error.hpp"

namespace tessera {

using namespace grammar;

Result<GrammarVocabulary> GrammarVocabulary::create(std::span<const std::string> tokens,
                                                    std::span<const Token> ends, const Hash128& tokenizer) noexcept {
  return guard_fuel([&]() -> Result<GrammarVocabulary> {
    if (tokens.empty() || tokens.size() > 10'000'000) {
      return detail::make_error(ErrorCode::invalid_argument, "a vocabulary of {} tokens", tokens.size());
    }
    std::vector<std::uint32_t> end_ids;
    for (const Token end : ends) {
      if (end < 0 || static_cast<std::size_t>(end) >= tokens.size()) {
        return detail::make_error(ErrorCode::invalid_argument, "the end token {} is not in the vocabulary", end);
      }
      end_ids.push_back(static_cast<std::uint32_t>(end));
    }
    auto state = std::make_shared<State>();
    state->tokenizer = tokenizer;
    state->bytes.assign(tokens.begin(), tokens.end());
    for (const std::uint32_t end : end_ids) state->bytes[end].clear();
    const std::vector<std::string_view> views(state->bytes.begin(), state->bytes.end());
    state->trie = TokenTrie::make(views, std::move(end_ids));
    return GrammarVocabulary(std::move(state));
  });
}

Result<GrammarVocabulary> GrammarVocabulary::create(const Tokenizer& tokenizer) noexcept {
  return guard_fuel([&]() -> Result<GrammarVocabulary> {
    if (tokenizer.vocab_size() == 0) {
      return detail::make_error(ErrorCode::invalid_state,
                                "there is no tokenizer: grammars need to know the bytes of the tokens");
    }
    std::vector<std::string> tokens(tokenizer.vocab_size());
    std::vector<Token> ends;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto token = static_cast<Token>(i);
      if (tokenizer.is_end_of_generation(token)) {
        ends.push_back(token);
        continue;
      }
      const TokenType type = tokenizer.type(token);
      if (type == TokenType::control || type == TokenType::unknown || type == TokenType::unused) continue;
      tokens[i] = tokenizer.piece(token);
    }
    return create(tokens, ends, tokenizer.fingerprint());
  });
}

std::size_t GrammarVocabulary::size() const noexcept { return state_ == nullptr ? 0 : state_->bytes.size(); }
std::size_t GrammarVocabulary::memory_bytes() const noexcept {
  if (state_ == nullptr) return 0;
  std::size_t bytes = state_->trie.memory_bytes() + state_->bytes.capacity() * sizeof(std::string);
  for (const std::string& text : state_->bytes) bytes += text.capacity() > 15 ? text.capacity() : 0;
  return bytes;
}
std::string_view GrammarVocabulary::bytes(Token token) const noexcept {
  if (token < 0 || static_cast<std::size_t>(token) >= size()) return {};
  return state_->bytes[static_cast<std::size_t>(token)];
}

Hash128 GrammarVocabulary::tokenizer() const noexcept { return state_ == nullptr ? Hash128{} : state_->tokenizer; }

Result<CompiledGrammar> CompiledGrammar::create(const Grammar& grammar, const GrammarVocabulary& vocabulary,
                                                const GrammarLimits& limits) noexcept {
  return guard_fuel([&]() -> Result<CompiledGrammar> {
    if (grammar.ir() == nullptr) return detail::empty_handle("Grammar");
    if (vocabulary.state() == nullptr) return detail::empty_handle("GrammarVocabulary");
    std::shared_ptr<Compiled> state(new Compiled{vocabulary, limits, Program::make(*grammar.ir()), {}, {}});
    static_cast<void>(state->warm_cache());
    return CompiledGrammar(std::move(state));
  });
}

const GrammarVocabulary& CompiledGrammar::vocabulary() const noexcept {
  return state_ == nullptr ? detail::empty_value<GrammarVocabulary>() : state_->vocabulary;
}

std::size_t CompiledGrammar::memory_bytes() const noexcept {
  if (state_ == nullptr) return 0;
  const std::scoped_lock hold(state_->lock);
  const std::scoped_lock inside(state_->cache->lock);
  return state_->program.regexes.memory_bytes() + state_->cache->machine.memory_bytes() +
         state_->cache->masks.size() * state_->vocabulary.state()->trie.words() * 8;
}

std::shared_ptr<MaskCache> Compiled::warm_cache() const {
  const std::scoped_lock hold(lock);
  bool fresh = cache == nullptr;
  if (!fresh) {
    const std::scoped_lock inside(cache->lock);
    fresh = cache->machine.memory_bytes() > limits.memory_bytes / 2;
  }
  if (fresh) cache = std::make_shared<MaskCache>(program, limits);
  return cache;
}

namespace {

std::string describe(const ByteSet& bytes, bool may_end) {
  std::string out;
  const auto add = [&](std::string_view part) {
    if (!out.empty()) out += ", ";
    out += part;
  };
  unsigned shown = 0;
  for (unsigned b = 0; b < 256; ++b) {
    if (!bytes.has(b)) continue;
    unsigned last = b;
    while (last < 255 && bytes.has(last + 1)) ++last;
    const auto name = [](unsigned byte) {
      return byte > 0x20 && byte < 0x7F ? fmt::format("'{}'", static_cast<char>(byte)) : fmt::format("0x{:02X}", byte);
    };
    if (++shown > 12) {
      add("...");
      break;
    }
    add(last == b ? name(b) : fmt::format("{} to {}", name(b), name(last)));
    b = last;
  }
  if (may_end) add("the end of the text");
  return out.empty() ? "nothing" : out;
}

}  // namespace

Result<TextCheck> CompiledGrammar::check(std::string_view text) const noexcept {
  return guard_fuel([&]() -> Result<TextCheck> {
    if (state_ == nullptr) return detail::empty_handle("CompiledGrammar");
    const auto cache = state_->warm_cache();
    const std::scoped_lock hold(cache->lock);
    grammar::Machine& machine = cache->machine;
    std::uint32_t state = grammar::Machine::kStart;
    for (std::size_t i = 0; i < text.size(); ++i) {
      machine.begin_operation();
      const std::uint32_t next = machine.next(state, static_cast<unsigned char>(text[i]));
      if (next == grammar::Machine::kDead) return TextCheck{false, i, describe(machine.following(state), machine.accepts(state))};
      state = next;
    }
    if (machine.accepts(state)) return TextCheck{true, text.size(), {}};
    return TextCheck{false, text.size(), describe(machine.following(state), false)};
  });
}

}  // namespace tessera

#include <tessera/extend/grammar/matcher.hpp>

#include <algorithm>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "grammar/compiled.hpp"

namespace tessera {

using namespace grammar;

namespace {

constexpr std::uint32_t kEnded = kNone;  // used as a state: an end token was accepted, so nothing may follow

bool is_end(const TokenTrie& tokens, Token token) {
  return token >= 0 && std::find(tokens.ends.begin(), tokens.ends.end(), static_cast<std::uint32_t>(token)) != tokens.ends.end();
}

// Returns the state after the token; kDead if the token is not allowed.
std::uint32_t state_after(grammar::Machine& machine, std::uint32_t state, Token token, const GrammarVocabulary& vocabulary) {
  if (is_end(vocabulary.state()->trie, token)) {
    return state == kEnded || machine.accepts(state) ? kEnded : grammar::Machine::kDead;
  }
  const std::string_view bytes = vocabulary.bytes(token);
  if (bytes.empty() || state == kEnded) return grammar::Machine::kDead;
  for (const char c : bytes) {
    state = machine.next(state, static_cast<unsigned char>(c));
    if (state == grammar::Machine::kDead) break;
  }
  return state;
}

}  // namespace

Matcher::Matcher(std::shared_ptr<const Compiled> grammar, std::shared_ptr<MaskCache> cache)
    : grammar_(std::move(grammar)), cache_(std::move(cache)), states_{grammar::Machine::kStart} {}

Status Matcher::status() const noexcept {
  if (grammar_ == nullptr) return detail::empty_handle("Matcher");
  return {};
}

Result<Matcher> Matcher::create(const CompiledGrammar& grammar) noexcept {
  return guard_fuel([&]() -> Result<Matcher> {
    if (grammar.state_ == nullptr) return detail::empty_handle("CompiledGrammar");
    return Matcher(grammar.state_, grammar.state_->warm_cache());
  });
}

Result<std::span<const std::uint64_t>> Matcher::mask() noexcept {
  return guard_fuel([&]() -> Result<std::span<const std::uint64_t>> {
    TESSERA_TRY_STATUS(status());
    const TokenTrie& tokens = grammar_->vocabulary.state()->trie;
    if (states_.back() == kEnded) {
      mask_.assign(tokens.words(), 0);
      for (const std::uint32_t end : tokens.ends) mask_[end / 64] |= std::uint64_t{1} << (end % 64);
    } else {
      const std::scoped_lock hold(cache_->lock);
      cache_->machine.begin_operation();
      cache_->mask(states_.back(), tokens, mask_);
    }
    if (std::all_of(mask_.begin(), mask_.end(), [](auto word) { return word == 0; })) {
      return detail::make_error(ErrorCode::numeric,
                                "no token of the vocabulary can continue the text as the grammar asks after {} tokens",
                                accepted());
    }
    return std::span<const std::uint64_t>(mask_);
  });
}

Status Matcher::accept(Token token) noexcept {
  return guard_fuel([&]() -> Status {
    TESSERA_TRY_STATUS(status());
    const std::scoped_lock hold(cache_->lock);
    cache_->machine.begin_operation();
    const std::uint32_t next = state_after(cache_->machine, states_.back(), token, grammar_->vocabulary);
    if (next == grammar::Machine::kDead) {
      return detail::make_error(ErrorCode::invalid_argument, "the grammar does not allow token {} after {} tokens", token,
                                accepted());
    }
    states_.push_back(next);
    return {};
  });
}

Status Matcher::rollback(std::size_t n) noexcept {
  TESSERA_TRY_STATUS(status());
  if (n > accepted()) {
    return detail::make_error(ErrorCode::invalid_argument, "cannot roll back {} tokens: {} were accepted", n, accepted());
  }
  states_.resize(states_.size() - n);
  return {};
}

Result<std::size_t> Matcher::check(std::span<const Token> draft) noexcept {
  return guard_fuel([&]() -> Result<std::size_t> {
    TESSERA_TRY_STATUS(status());
    const std::scoped_lock hold(cache_->lock);
    std::uint32_t state = states_.back();
    for (std::size_t i = 0; i < draft.size(); ++i) {
      cache_->machine.begin_operation();
      state = state_after(cache_->machine, state, draft[i], grammar_->vocabulary);
      if (state == grammar::Machine::kDead) return i;
    }
    return draft.size();
  });
}

Result<std::string> Matcher::forced(std::size_t limit) noexcept {
  return guard_fuel([&]() -> Result<std::string> {
    TESSERA_TRY_STATUS(status());
    if (states_.back() == kEnded) return std::string();
    const std::scoped_lock hold(cache_->lock);
    cache_->machine.begin_operation();
    return cache_->machine.forced(states_.back(), limit);
  });
}

Hash128 Matcher::tokenizer() const noexcept { return grammar_ == nullptr ? Hash128{} : grammar_->vocabulary.tokenizer(); }

bool Matcher::may_end() const noexcept {
  if (grammar_ == nullptr) return false;
  if (ended()) return true;
  const std::scoped_lock hold(cache_->lock);
  return cache_->machine.accepts(states_.back());
}

bool Matcher::ended() const noexcept { return grammar_ != nullptr && states_.back() == kEnded; }

}  // namespace tessera

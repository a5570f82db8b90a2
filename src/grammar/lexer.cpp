#include "grammar/lexer.hpp"

#include <algorithm>

namespace tessera::grammar {

Lexer::Lexer(const Program& program) : regexes_(program.regexes), terminals_(program.terminals) { intern({}); }

std::uint32_t Lexer::intern(std::span<const Pair> pairs) {
  std::uint64_t h = 0;
  for (const Pair& pair : pairs) h = mix(h, (std::uint64_t{pair.terminal} << 32) | pair.rest);
  const auto same = [&](std::uint32_t id) {
    const State& s = states_[id];
    return s.pairs_size == pairs.size() && std::equal(pairs.begin(), pairs.end(), pairs_.begin() + s.pairs);
  };
  if (const auto found = index_.find(h, same); found != kNone) return found;
  if (states_.size() >= kMostStates || pairs_.size() > 40 * kMostStates) out_of_fuel("its terminals have too many states");
  State state{static_cast<std::uint32_t>(pairs_.size()), static_cast<std::uint32_t>(pairs.size()),
              static_cast<std::uint32_t>(ids_.size()), 0, 0, false};
  ByteSet first;
  for (const Pair& pair : pairs) {
    if (regexes_.nullable(pair.rest)) ids_.push_back(pair.terminal);
    first |= regexes_.first(pair.rest);
  }
  state.accepted_size = static_cast<std::uint32_t>(ids_.size()) - state.accepted;
  state.goes_on = !first.empty();
  state.first = static_cast<std::uint32_t>(firsts_.size());
  firsts_.push_back(first);
  pairs_.insert(pairs_.end(), pairs.begin(), pairs.end());
  const auto id = static_cast<std::uint32_t>(states_.size());
  transitions_.add_state();
  states_.push_back(state);  // comes last: if an allocation above fails, no state refers to the entries that were added
  index_.add(h, id);
  return id;
}

std::uint32_t Lexer::start(std::span<const std::uint32_t> terminals) {
  scratch_.clear();
  for (const std::uint32_t t : terminals) scratch_.push_back({t, terminals_[t]});
  work_ += terminals.size();
  return intern(scratch_);
}

// Computes next() for this byte, and stores the result. If the byte belongs to a class of bytes with the same derivatives
// (RegexStore::classes_of()), stores the result for all bytes of the class. Exception: if no text of the state begins with the byte, stores
// kDead for this byte only.
std::uint32_t Lexer::compute(std::uint32_t state, unsigned byte) {
  if (!firsts_[states_[state].first].has(byte)) {
    transitions_.set(state, byte, kDead);
    return kDead;
  }
  scratch_.clear();
  rests_.clear();
  const State from = states_[state];
  work_ += from.pairs_size;
  for (std::uint32_t i = 0; i < from.pairs_size; ++i) {
    const Pair pair = pairs_[from.pairs + i];
    rests_.push_back(pair.rest);
    const Regex rest = regexes_.derivative(pair.rest, byte);
    if (rest != RegexStore::kEmpty && !regexes_.is_empty(rest)) scratch_.push_back({pair.terminal, rest});
  }
  const std::uint32_t target = intern(scratch_);
  std::array<std::uint8_t, 256> classes{};
  if (regexes_.classes_of(rests_, classes) == 0) {
    transitions_.set(state, byte, target);
    return target;
  }
  for (unsigned b = 0; b < 256; ++b) {
    if (classes[b] == classes[byte]) transitions_.set(state, b, target);
  }
  return target;
}

std::size_t Lexer::memory_bytes() const noexcept {
  return regexes_.memory_bytes() + states_.capacity() * sizeof(State) + pairs_.capacity() * sizeof(Pair) +
         ids_.capacity() * 4 + firsts_.capacity() * sizeof(ByteSet) + index_.memory_bytes() + transitions_.memory_bytes();
}

}  // namespace tessera::grammar

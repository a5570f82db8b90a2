// An automaton that reads several terminals (regular expressions) at the same time, because several may come next. A state is a set of
// pairs: a terminal, and an expression for what may still follow in this terminal after the bytes that were read. A state is made when it
// is first reached. In state 0, the dead one, no terminal is left that matches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/program.hpp"
#include "grammar/transitions.hpp"

namespace tessera::grammar {

class Lexer {
 public:
  static constexpr std::uint32_t kDead = 0;
  static constexpr std::size_t kMostStates = 100'000;

  explicit Lexer(const Program& program);

  // Returns the state in which these terminals begin. Precondition: `terminals` is sorted, and none is there twice.
  [[nodiscard]] std::uint32_t start(std::span<const std::uint32_t> terminals);
  [[nodiscard]] std::uint32_t next(std::uint32_t state, unsigned byte) {
    const std::uint32_t known = transitions_.get(state, byte);
    return known != Transitions::kUnknown ? known : compute(state, byte);
  }
  // Returns next() if it was computed before; otherwise Transitions::kUnknown.
  [[nodiscard]] std::uint32_t known(std::uint32_t state, unsigned byte) const noexcept { return transitions_.get(state, byte); }
  // Returns the terminals that may end in this state.
  [[nodiscard]] std::span<const std::uint32_t> accepted(std::uint32_t state) const noexcept {
    return {ids_.data() + states_[state].accepted, states_[state].accepted_size};
  }
  [[nodiscard]] bool goes_on(std::uint32_t state) const noexcept { return states_[state].goes_on; }

  [[nodiscard]] bool absorbs(std::uint32_t state, const CharSet& set, std::uint32_t n) {
    for (std::uint32_t i = 0; i < states_[state].pairs_size; ++i) {
      if (regexes_.absorbs(pairs_[states_[state].pairs + i].rest, set, n)) return true;
    }
    return false;
  }

  [[nodiscard]] std::size_t memory_bytes() const noexcept;
  [[nodiscard]] std::uint64_t work() const noexcept { return work_ + regexes_.work(); }

 private:
  struct Pair {
    std::uint32_t terminal;
    Regex rest;
    bool operator==(const Pair&) const noexcept = default;
  };
  struct State {
    std::uint32_t pairs, pairs_size;
    std::uint32_t accepted, accepted_size;
    std::uint32_t first;    // index in firsts_
    bool goes_on;           // true: some terminal may continue with another byte
  };

  std::uint32_t compute(std::uint32_t state, unsigned byte);
  std::uint32_t intern(std::span<const Pair> pairs);

  RegexStore regexes_;
  std::vector<Regex> terminals_;
  std::vector<State> states_;
  std::vector<Pair> pairs_;
  std::vector<std::uint32_t> ids_;
  std::vector<ByteSet> firsts_;
  Interner index_;
  Transitions transitions_;
  std::vector<Pair> scratch_;
  std::vector<Regex> rests_;
  std::uint64_t work_ = 0;  // number of pairs that start() and compute() have handled
};

}  // namespace tessera::grammar

// A grammar as one automaton over bytes: from a state and a byte follows the next state. A state is a set of terminals that are being
// read, each with the row of the parser (chart.hpp) at which the terminal began. A state is made when it is first reached. The first time
// that a byte is read in a state, the next state is computed; later it is looked up in a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/grammar/compiled.hpp>

#include "grammar/chart.hpp"
#include "grammar/lexer.hpp"
#include "grammar/program.hpp"
#include "grammar/transitions.hpp"

namespace tessera::grammar {

class Machine {
 public:
  static constexpr std::uint32_t kDead = 0, kStart = 1;

  Machine(const Program& program, const GrammarLimits& limits);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  [[nodiscard]] std::uint32_t next(std::uint32_t state, unsigned byte) {
    const std::uint32_t known = transitions_.get(state, byte);
    return known != Transitions::kUnknown ? known : compute(state, byte);
  }
  [[nodiscard]] bool accepts(std::uint32_t state) const noexcept { return states_[state].accepts; }
  // Returns the set of bytes that may come next.
  [[nodiscard]] ByteSet following(std::uint32_t state);
  // Returns the text that must come next, because at each of its bytes nothing else may follow; at most `limit` bytes.
  [[nodiscard]] std::string forced(std::uint32_t state, std::size_t limit);

  // Returns true if every sequence of at most n characters of the set may come next. May return false although that is so, if it is not
  // easy to find out.
  [[nodiscard]] bool absorbs(std::uint32_t state, const CharSet& set, std::uint32_t n) {
    for (std::uint32_t i = 0; i < states_[state].size; ++i) {
      if (lexer_.absorbs(lives_[states_[state].lives + i].lexer, set, n)) return true;
    }
    return false;
  }

  // Sets the limit of work for the calls that follow: GrammarLimits::step_work steps, as work() counts them. To be called before each mask
  // and before each accepted token. A call that exceeds the limit throws (check_limits()).
  void begin_operation() { work_limit_ = work() + limits_.step_work; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
  [[nodiscard]] std::size_t states() const noexcept { return states_.size(); }
  [[nodiscard]] std::uint64_t work() const noexcept { return lexer_.work() + chart_.work() + states_.size(); }

 private:
  struct Live {
    std::uint32_t row, lexer;
    auto operator<=>(const Live&) const noexcept = default;
  };
  struct State {
    std::uint32_t lives, size;
    bool accepts;
  };
  static constexpr std::size_t kMostLives = 10'000;

  std::uint32_t compute(std::uint32_t state, unsigned byte);
  std::uint32_t intern(bool accepts);  // returns the state that has new_lives_; makes it if it is new
  void check_limits();

  const Program& program_;
  GrammarLimits limits_;
  Lexer lexer_;
  Chart chart_;
  std::vector<State> states_;
  std::vector<Live> lives_;
  Interner index_;
  Transitions transitions_;
  std::vector<Live> new_lives_;
  std::vector<Item> kernel_;
  std::uint64_t work_limit_ = 0;
};

}  // namespace tessera::grammar

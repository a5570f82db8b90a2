// A grammar as one automaton over bytes. A state is the set of lexemes that are being read, each with the parser's row at its beginning.
// States are found when they are first met; after that a step is a look-up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/chart.hpp"
#include "grammar/lexer.hpp"
#include "grammar/program.hpp"
#include "grammar/transitions.hpp"

namespace tessera::grammar {

struct MachineLimits {
  std::size_t memory_bytes = std::size_t{48} << 20;
  std::uint64_t step_work = 500'000;  // derivatives and items of one operation (each takes some 100 ns at most)
};

class Machine {
 public:
  static constexpr std::uint32_t kDead = 0, kStart = 1;

  Machine(const Program& program, const MachineLimits& limits);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  [[nodiscard]] std::uint32_t next(std::uint32_t state, unsigned byte) {
    const std::uint32_t known = transitions_.get(state, byte);
    return known != Transitions::kUnknown ? known : compute(state, byte);
  }
  [[nodiscard]] bool accepts(std::uint32_t state) const noexcept { return states_[state].accepts; }
  // Returns the bytes with which the text may go on.
  [[nodiscard]] ByteSet following(std::uint32_t state);
  // Returns the bytes that must follow, at most `limit`.
  [[nodiscard]] std::string forced(std::uint32_t state, std::size_t limit);

  // Returns whether any n characters of the set may come next; false if that is not obvious.
  [[nodiscard]] bool absorbs(std::uint32_t state, const CharSet& set, std::uint32_t n) {
    for (std::uint32_t i = 0; i < states_[state].size; ++i) {
      if (lexer_.absorbs(lives_[states_[state].lives + i].lexer, set, n)) return true;
    }
    return false;
  }

  // Begins an operation, which has fuel of its own.
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
  std::uint32_t intern(bool accepts);  // returns the state of new_lives_
  void check_limits();

  const Program& program_;
  MachineLimits limits_;
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

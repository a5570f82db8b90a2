// Random walks for RapidCheck. A program's shrinks have fewer commands, or smaller numbers in one.
#pragma once

#include <ostream>
#include <vector>

#include <rapidcheck.h>

#include "operations.hpp"

namespace tessera::tests {

struct Program {
  std::vector<std::uint8_t> setup;
  std::vector<Command> commands;
};

[[nodiscard]] inline Setup setup_of(const std::vector<std::uint8_t>& v) {
  return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
}

inline std::ostream& operator<<(std::ostream& out, const Program& program) {
  const Setup s = setup_of(program.setup);
  out << fmt::format("types {} pages {} heads {} budget {} keep {} slab {} hash {} freed {}", s.types, s.pages, s.heads,
                     s.budget, s.keep, s.slab, s.hash, s.freed);
  for (const Command& c : program.commands) {
    out << fmt::format("\n  {} {} ({}, {})", Machine::operations()[c.operation].name, c.which, c.a, c.b);
  }
  return out;
}

// A random operation, by weight, with random numbers.
[[nodiscard]] inline Command command_of(std::uint64_t random) {
  unsigned all = 0;
  for (const auto& operation : Machine::operations()) all += operation.weight;
  auto weight = static_cast<unsigned>((random >> 32) % all);
  std::uint8_t index = 0;
  while (weight >= Machine::operations()[index].weight) weight -= Machine::operations()[index++].weight;
  return {.operation = index,
          .which = static_cast<std::uint8_t>(random),
          .a = static_cast<std::uint8_t>(random >> 8),
          .b = static_cast<std::uint8_t>(random >> 16)};
}

// First without a half, a quarter and so on of the commands, at each place; RapidCheck's own way takes a run for every
// pair of places, which is too many for walks of this length. Then with smaller numbers.
class Smaller {
 public:
  explicit Smaller(Program program) : program_(std::move(program)), chunk_((program_.commands.size() + 1) / 2) {}

  rc::Maybe<Program> operator()() {
    const std::size_t size = program_.commands.size();
    if (chunk_ > 0 && size > 0) {
      Program smaller{program_.setup, {}};
      const std::size_t end = std::min(size, at_ + chunk_);
      smaller.commands.assign(program_.commands.begin(), program_.commands.begin() + static_cast<std::ptrdiff_t>(at_));
      smaller.commands.insert(smaller.commands.end(), program_.commands.begin() + static_cast<std::ptrdiff_t>(end),
                              program_.commands.end());
      at_ = end;
      if (at_ == size) {
        at_ = 0;
        chunk_ = chunk_ == 1 ? 0 : (chunk_ + 1) / 2;
      }
      return smaller;
    }
    // Every number in turn: 0, a half, one less.
    for (; number_ < program_.setup.size() + 3 * size; ++number_, halving_ = 0) {
      Program smaller = program_;
      std::uint8_t& value = number_of(smaller, number_);
      const int was = value;
      if (halving_ == 3) continue;
      const int now = halving_ == 0 ? 0 : halving_ == 1 ? was / 2 : was - 1;
      ++halving_;
      if (now >= was || (halving_ > 1 && now == 0)) continue;
      value = static_cast<std::uint8_t>(now);
      return smaller;
    }
    return rc::Nothing;
  }

 private:
  static std::uint8_t& number_of(Program& program, std::size_t i) {
    if (i < program.setup.size()) return program.setup[i];
    i -= program.setup.size();
    Command& command = program.commands[i / 3];
    return i % 3 == 0 ? command.which : i % 3 == 1 ? command.a : command.b;
  }

  Program program_;
  std::size_t chunk_;
  std::size_t at_ = 0;
  std::size_t number_ = 0;
  int halving_ = 0;
};

[[nodiscard]] inline rc::Gen<Program> programs(std::size_t commands) {
  return [commands](const rc::Random& from, int) {
    rc::Random random = from;
    Program program;
    const std::uint64_t setup = random.next();
    for (int i = 0; i < 8; ++i) program.setup.push_back(static_cast<std::uint8_t>(setup >> 8 * i));
    for (std::size_t i = 0; i < commands; ++i) program.commands.push_back(command_of(random.next()));
    return rc::shrinkable::shrinkRecur(std::move(program), [](const Program& p) { return rc::makeSeq<Smaller>(p); });
  };
}

}  // namespace tessera::tests

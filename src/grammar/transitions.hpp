// The transition table of an automaton that is built while it is used: it gives the next state for a state and a byte. The 256
// transitions of a state, one for each value of a byte, are stored as four arrays (Page) of 64 transitions. To save memory, an array is
// made only when one of its transitions is first set.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "grammar/interner.hpp"

namespace tessera::grammar {

class Transitions {
 public:
  static constexpr std::uint32_t kUnknown = kNone;

  // Adds an entry without transitions, for the next state of the caller. The caller has a list of states of its own: entry i belongs to state
  // i of that list. If the caller then cannot add its state (no memory), the entry may stay: all new entries are alike, so this entry belongs
  // to the state that the caller adds next.
  void add_state() { states_.push_back({0, 0, 0, 0}); }

  [[nodiscard]] std::uint32_t get(std::uint32_t state, unsigned byte) const noexcept {
    return pages_[states_[state][byte >> 6]][byte & 63];
  }
  void set(std::uint32_t state, unsigned byte, std::uint32_t target) {
    std::uint32_t& page = states_[state][byte >> 6];
    if (page == 0) {
      pages_.push_back(pages_[0]);
      page = static_cast<std::uint32_t>(pages_.size() - 1);
    }
    pages_[page][byte & 63] = target;
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return pages_.capacity() * sizeof(pages_[0]) + states_.capacity() * sizeof(states_[0]);
  }

 private:
  using Page = std::array<std::uint32_t, 64>;
  [[nodiscard]] static Page unknown() noexcept {
    Page page{};
    page.fill(kUnknown);
    return page;
  }
  std::vector<Page> pages_{unknown()};  // all transitions of page 0 stay unknown
  std::vector<std::array<std::uint32_t, 4>> states_;
};

}  // namespace tessera::grammar

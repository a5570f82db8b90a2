#include "grammar/machine.hpp"

#include <algorithm>

namespace tessera::grammar {

Machine::Machine(const Program& program, const GrammarLimits& limits)
    : program_(program), limits_(limits), lexer_(program), chart_(program_, lexer_) {
  begin_operation();
  intern(false);  // makes the dead state
  const std::uint32_t row = Chart::first_row();
  if (chart_.lexer_state(row) != Lexer::kDead) new_lives_.push_back({row, chart_.lexer_state(row)});
  intern(chart_.accepts(row));
}

std::uint32_t Machine::intern(bool accepts) {
  std::uint64_t h = accepts ? 1 : 2;
  for (const Live& live : new_lives_) h = mix(h, (std::uint64_t{live.row} << 32) | live.lexer);
  const auto same = [&](std::uint32_t id) {
    const State& s = states_[id];
    return s.accepts == accepts && s.size == new_lives_.size() &&
           std::equal(new_lives_.begin(), new_lives_.end(), lives_.begin() + s.lives);
  };
  if (const auto found = index_.find(h, same); found != kNone) return found;
  check_limits();
  const auto id = static_cast<std::uint32_t>(states_.size());
  const State state{static_cast<std::uint32_t>(lives_.size()), static_cast<std::uint32_t>(new_lives_.size()), accepts};
  // The state is added last: if an allocation fails before, no state refers to the entries that were added to the other lists.
  lives_.insert(lives_.end(), new_lives_.begin(), new_lives_.end());
  transitions_.add_state();
  states_.push_back(state);
  index_.add(h, id);
  return id;
}

void Machine::check_limits() {
  if (work() > work_limit_) out_of_fuel("one token takes too many steps");
  if (states_.size() % 16 == 0 && memory_bytes() > limits_.memory_bytes) out_of_fuel("its states take too much memory");
  if (new_lives_.size() > kMostLives) out_of_fuel("too many terminals are read at once");
}

std::uint32_t Machine::compute(std::uint32_t state, unsigned byte) {
  const State from = states_[state];
  new_lives_.clear();
  kernel_.clear();
  for (std::uint32_t i = 0; i < from.size; ++i) {
    const Live live = lives_[from.lives + i];
    const std::uint32_t next = lexer_.next(live.lexer, byte);
    if (next == Lexer::kDead) continue;
    for (const std::uint32_t terminal : lexer_.accepted(next)) chart_.scan(live.row, terminal, kernel_);
    if (lexer_.goes_on(next)) new_lives_.push_back({live.row, next});
  }
  bool accepts = false;
  if (!kernel_.empty()) {
    std::sort(kernel_.begin(), kernel_.end());
    kernel_.erase(std::unique(kernel_.begin(), kernel_.end()), kernel_.end());
    const std::uint32_t row = chart_.row(kernel_);
    accepts = chart_.accepts(row);
    if (const auto start = chart_.lexer_state(row); lexer_.goes_on(start)) new_lives_.push_back({row, start});
  }
  std::sort(new_lives_.begin(), new_lives_.end());
  const std::uint32_t target = new_lives_.empty() && !accepts ? kDead : intern(accepts);
  transitions_.set(state, byte, target);
  if (from.size == 1) {  // the result is stored for all bytes that the lexer treats alike
    const std::uint32_t lexer = lives_[from.lives].lexer, next = lexer_.known(lexer, byte);
    for (unsigned b = 0; b < 256; ++b) {
      if (b != byte && lexer_.known(lexer, b) == next) transitions_.set(state, b, target);
    }
  }
  return target;
}

ByteSet Machine::following(std::uint32_t state) {
  ByteSet set;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (next(state, byte) != kDead) set.add(byte);
  }
  return set;
}

std::string Machine::forced(std::uint32_t state, std::size_t limit) {
  std::string out;
  while (out.size() < limit && !accepts(state)) {
    unsigned only = 256;
    bool several = false;
    for (unsigned byte = 0; byte < 256 && !several; ++byte) {
      if (next(state, byte) == kDead) continue;
      several = only < 256;
      only = byte;
    }
    if (several || only == 256) break;
    out += static_cast<char>(only);
    state = next(state, only);
  }
  return out;
}

std::size_t Machine::memory_bytes() const noexcept {
  return lexer_.memory_bytes() + chart_.memory_bytes() + states_.capacity() * sizeof(State) +
         lives_.capacity() * sizeof(Live) + index_.memory_bytes() + transitions_.memory_bytes();
}

}  // namespace tessera::grammar

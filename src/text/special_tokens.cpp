#include "text/special_tokens.hpp"

#include <algorithm>

#include "text/position_set.hpp"

namespace tessera::detail {

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary) {
  std::vector<TextAutomaton::Entry> entries;
  const auto each = [&](auto&& act) {
    for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
      if (is_special(vocabulary.type(id)) && !vocabulary.text(id).empty()) act(id);
    }
  };
  std::size_t count = 0;
  each([&](std::uint32_t id) {
    ++count;
    any_user_defined_ |= vocabulary.type(id) == TokenType::user_defined;
  });
  entries.reserve(count);
  each([&](std::uint32_t id) { entries.push_back({vocabulary.text(id), id}); });
  automaton_ = TextAutomaton(std::move(entries));
}

std::uint64_t SpecialTokens::plan_bytes(const TokenizerMetadata& metadata) noexcept {
  return TextAutomaton::plan_bytes(metadata.special_count, metadata.special_bytes);
}

// Returns the node of the longest token that ends the text of `node`, is looked for, and has at most `longest` bytes; 0 if there is none.
std::uint32_t SpecialTokens::Finder::token_at(std::uint32_t node, std::uint32_t longest) const noexcept {
  const TextAutomaton& texts = tokens_.automaton_;
  for (node = texts.node(node).token; node != 0; node = texts.node(texts.node(node).fallback).token) {
    const bool looked_for = parse_ || vocabulary_.type(texts.node(node).id) == TokenType::user_defined;
    if (looked_for && texts.node(node).size <= longest) return node;
  }
  return 0;
}

bool SpecialTokens::Finder::next(SpecialMatch& match) {
  for (;;) {
    while (at_ < ends_.size()) {
      const std::size_t i = at_++;
      if (ends_[i] == 0) continue;
      match = {begin_ + i + 1 - size_at(i), size_at(i), tokens_.automaton_.node(ends_[i]).id};
      return true;
    }
    if (!next_stretch()) return false;
    if (overlap()) settle();
  }
}

// Reads the next stretch of the text, and sets ends_ to the tokens that end at each of its bytes. The stretch begins at the first unread
// byte, after text without tokens. It ends as soon as a token was found and the automaton is back at its root (so no longer token can
// reach beyond the end), or at the end of the text. Returns false if no token was found.
bool SpecialTokens::Finder::next_stretch() {
  at_ = 0;
  ends_.clear();
  begin_ = read_;
  if (!parse_ && !tokens_.any_user_defined_) return false;
  bool any = false;
  for (std::uint32_t node = 0; read_ < text_.size();) {
    node = tokens_.automaton_.step(node, static_cast<unsigned char>(text_[read_++]));
    if (ends_.size() == ends_.capacity() && node != 0) {  // grows at most to what is left of the text
      ends_.reserve(std::min(2 * ends_.size() + 64, ends_.size() + text_.size() - read_ + 1));
    }
    const std::uint32_t token = node == 0 ? 0 : token_at(node, kNoToken);
    any |= token != 0;
    while (node != 0 && tokens_.automaton_.is_leaf(node)) node = tokens_.automaton_.node(node).fallback;
    if (node != 0 || any) ends_.push_back(token);
    if (node != 0) continue;
    if (any) return true;
    ends_.clear();
    begin_ = read_;
  }
  return any;
}

bool SpecialTokens::Finder::overlap() const noexcept {
  std::size_t free = 0;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i] == 0) continue;
    if (i + 1 - size_at(i) < free) return true;
    free = i + 1;
  }
  return false;
}

// Decides which tokens of a stretch are kept, if tokens overlap. The best token is kept (the longest; of equally long tokens the one with
// the lowest id, then the leftmost), then the best of those that do not overlap it, and so on. Afterwards ends_ has only the tokens that
// are kept.
void SpecialTokens::Finder::settle() {
  const auto worse = [&](std::uint32_t a, std::uint32_t b) {
    const TextAutomaton::Node &x = tokens_.automaton_.node(ends_[a]), &y = tokens_.automaton_.node(ends_[b]);
    if (x.size != y.size) return x.size < y.size;
    return x.id != y.id ? x.id > y.id : a > b;
  };
  const auto size = static_cast<std::uint32_t>(ends_.size());
  std::vector<std::uint32_t> heap;  // last bytes of the tokens that may still be kept, the best token on top
  heap.reserve(static_cast<std::size_t>(std::ranges::count_if(ends_, [](std::uint32_t node) { return node != 0; })));
  for (std::uint32_t i = 0; i < size; ++i) {
    if (ends_[i] != 0) heap.push_back(i);
  }
  std::make_heap(heap.begin(), heap.end(), worse);
  PositionSet taken;
  taken.clear(size);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), worse);
    const std::uint32_t last = heap.back(), begin = last + 1 - size_at(last);
    heap.pop_back();
    if (taken.contains(last)) {
      ends_[last] = 0;
    } else if (!taken.contains(begin)) {
      // Checking the first and the last byte of this token is enough. A token that was kept before is at least as long. So if the kept
      // token overlaps this token, the kept token covers this token's first or last byte.
      for (std::uint32_t i = begin; i <= last; ++i) taken.insert(i);
    } else {
      ends_[last] = token_at(ends_[last], last - taken.previous(last));
      if (ends_[last] == 0) continue;
      heap.push_back(last);
      std::push_heap(heap.begin(), heap.end(), worse);
    }
  }
}

}  // namespace tessera::detail

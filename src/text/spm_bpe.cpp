#include "text/spm_bpe.hpp"

#include <bit>

#include "text/utf8.hpp"

namespace tessera::detail {
namespace {

// Floats as integers that sort the other way round: the highest score comes first.
std::uint32_t priority_of(float score) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(score);
  return (bits & 0x80000000u) != 0 ? bits : ~(bits | 0x80000000u);
}

}  // namespace

void SpmBpe::offer(std::string_view text, std::uint32_t left, std::uint32_t right, bool ordered) {
  if (left == kNoSymbol || right == kNoSymbol) return;
  const std::uint32_t size = symbols_[left].size + symbols_[right].size;
  const std::uint32_t id = vocabulary_.find_ordinary(text.substr(symbols_[left].begin, size));
  if (id == kNoToken) return;
  const std::uint32_t priority = priority_of(vocabulary_.score(id));
  if (ordered) {
    queue_.push(priority, left, right, size);
  } else {
    queue_.gather(priority, left, right, size);
  }
}

void SpmBpe::emit(std::string_view symbol, std::vector<Token>& out) const {
  if (const std::uint32_t id = vocabulary_.find_ordinary(symbol); id != kNoToken) {
    out.push_back(static_cast<Token>(id));
    return;
  }
  const std::size_t mark = out.size();
  for (const char c : symbol) {
    const std::uint32_t id = vocabulary_.byte_token(static_cast<unsigned char>(c));
    if (id == kNoToken) {  // no byte fallback: SentencePiece gives one unknown token for the character
      out.resize(mark);
      if (vocabulary_.unknown() != kNoToken) out.push_back(static_cast<Token>(vocabulary_.unknown()));
      return;
    }
    out.push_back(static_cast<Token>(id));
  }
}

void SpmBpe::encode(std::string_view text, std::vector<Token>& out) {
  if (text.empty()) return;
  symbols_.clear();
  for (std::uint32_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    const auto size = step.kind == Utf8Kind::valid ? static_cast<std::uint32_t>(step.size) : 1u;
    const auto index = static_cast<std::uint32_t>(symbols_.size());
    symbols_.push_back({at, size, index - 1, index + 1});  // index 0: previous wraps to kNoSymbol
    at += size;
  }
  symbols_.back().next = kNoSymbol;

  queue_.start();
  for (std::uint32_t i = 1; i < symbols_.size(); ++i) offer(text, i - 1, i, false);
  queue_.order();

  while (!queue_.empty()) {
    const MergeCandidate best = queue_.pop();
    const std::uint32_t left = best.left();
    Symbol& a = symbols_[left];
    Symbol& b = symbols_[best.right];
    // Symbols only grow, or vanish: the sum of their sizes stands only if neither did.
    if (a.size == 0 || b.size == 0 || a.size + b.size != best.check) continue;
    a.size += b.size;
    b.size = 0;
    a.next = b.next;
    if (b.next != kNoSymbol) symbols_[b.next].previous = left;
    offer(text, a.previous, left, true);
    offer(text, left, a.next, true);
  }
  for (std::uint32_t i = 0; i != kNoSymbol; i = symbols_[i].next) {
    emit(text.substr(symbols_[i].begin, symbols_[i].size), out);
  }
}

}  // namespace tessera::detail

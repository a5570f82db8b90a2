#include "text/spm_bpe.hpp"

#include <bit>

#include "text/utf8.hpp"

namespace tessera::detail {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// Floats as integers that sort the other way round: the highest score comes first.
std::uint32_t priority_of(float score) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(score);
  return (bits & 0x80000000u) != 0 ? bits : ~(bits | 0x80000000u);
}

}  // namespace

void SpmBpe::offer(std::string_view text, std::uint32_t left, std::uint32_t right) {
  if (left == kNoSymbol || right == kNoSymbol) return;
  const std::uint32_t size = symbols_[left].size + symbols_[right].size;
  const std::uint32_t id = vocabulary_.find_ordinary(text.substr(symbols_[left].begin, size));
  if (id == kNoToken) return;
  queue_.push(priority_of(vocabulary_.score(id)), left, right, size);
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

SpaceCuts::SpaceCuts(const Vocabulary& vocabulary) noexcept {
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    for (std::size_t at = text.find(kSpaceMark, 1); at != std::string_view::npos; at = text.find(kSpaceMark, at + 1)) {
      joined_[static_cast<unsigned char>(text[at - 1])] = true;
    }
  }
}

std::size_t SpaceCuts::next(std::string_view text, std::size_t from) const noexcept {
  for (std::size_t at = text.find(kSpaceMark, from + 1); at != std::string_view::npos;
       at = text.find(kSpaceMark, at + 1)) {
    if (!joined_[static_cast<unsigned char>(text[at - 1])]) return at;
  }
  return text.size();
}

void SpmBpe::encode(std::string_view text, std::vector<Token>& out) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = cuts_.next(text, at);
    encode_part(text.substr(at, end - at), out);
    at = end;
  }
}

void SpmBpe::encode_part(std::string_view text, std::vector<Token>& out) {
  symbols_.clear();
  for (std::uint32_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    const auto size = step.kind == Utf8Kind::valid ? static_cast<std::uint32_t>(step.size) : 1u;
    const auto index = static_cast<std::uint32_t>(symbols_.size());
    symbols_.push_back({at, size, index - 1, index + 1});  // index 0: previous wraps to kNoSymbol
    at += size;
  }
  symbols_.back().next = kNoSymbol;

  queue_.clear();
  for (std::uint32_t i = 1; i < symbols_.size(); ++i) offer(text, i - 1, i);
  for (MergeCandidate best; queue_.pop(best);) {
    const std::uint32_t left = best.left();
    Symbol& a = symbols_[left];
    Symbol& b = symbols_[best.right];
    // Symbols only grow, or vanish: the sum of their sizes stands only if neither did.
    if (a.size == 0 || b.size == 0 || a.size + b.size != best.check) continue;
    a.size += b.size;
    b.size = 0;
    a.next = b.next;
    if (b.next != kNoSymbol) symbols_[b.next].previous = left;
    offer(text, a.previous, left);
    offer(text, left, a.next);
  }
  for (std::uint32_t i = 0; i != kNoSymbol; i = symbols_[i].next) {
    emit(text.substr(symbols_[i].begin, symbols_[i].size), out);
  }
}

}  // namespace tessera::detail

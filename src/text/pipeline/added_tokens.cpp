#include "text/pipeline/added_tokens.hpp"

#include <algorithm>
#include <utility>

#include "core/guard.hpp"
#include "core/utf8.hpp"
#include "text/pipeline/characters.hpp"

namespace tessera::detail {
namespace {

bool is_word_at(std::string_view text, std::size_t at) noexcept {
  if (at >= text.size() || utf8_step(text.substr(at)).kind != Utf8Kind::valid) return false;
  return is_word_character(next_code_point(text, at));
}

bool is_space_at(std::string_view text, std::size_t at) noexcept {
  if (at >= text.size() || utf8_step(text.substr(at)).kind != Utf8Kind::valid) return false;
  return is_white_space(next_code_point(text, at));
}

// Returns the beginning of the white space that ends at `end`.
std::size_t spaces_before(std::string_view text, std::size_t end, std::size_t least) noexcept {
  while (end > least) {
    const std::size_t before = previous_character(text, end);
    if (before < least || !is_space_at(text, before)) break;
    end = before;
  }
  return end;
}

std::size_t spaces_behind(std::string_view text, std::size_t at) noexcept {
  while (is_space_at(text, at)) (void)next_code_point(text, at);
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& token) { return token.text.empty(); });
  // If several tokens have the same text, a special one is found.
  std::stable_partition(tokens_.begin(), tokens_.end(), [](const AddedToken& token) { return token.special; });
  std::vector<std::string> reversed;
  std::vector<TextAutomaton::Entry> entries;
  reversed.reserve(tokens_.size());
  entries.reserve(tokens_.size());
  for (const AddedToken& token : tokens_) {
    reversed.emplace_back(token.text.rbegin(), token.text.rend());
    entries.push_back({reversed.back(), static_cast<std::uint32_t>(entries.size())});
  }
  if (!entries.empty()) backwards_ = TextAutomaton(std::move(entries));
}

std::uint64_t AddedTokens::memory_bytes() const noexcept {
  std::uint64_t total = backwards_.memory_bytes() + tokens_.capacity() * sizeof(AddedToken);
  for (const AddedToken& token : tokens_) total += token.text.capacity() > sizeof(std::string) ? token.text.capacity() : 0;
  return total;
}

Status AddedTokens::split(std::string_view text, Special special, const Part& part) const {
  struct Begin {
    std::uint32_t at, node;  // the position where a token begins, and the node of the longest token that begins there
  };
  std::vector<Begin> begins;  // from the text's end to its beginning
  if (!backwards_.empty()) {
    std::uint32_t node = 0;
    for (std::size_t at = text.size(); at-- > 0;) {
      node = backwards_.step(node, static_cast<unsigned char>(text[at]));
      if (const std::uint32_t token = backwards_.node(node).token; token != 0) {
        begins.push_back({static_cast<std::uint32_t>(at), token});
      }
    }
  }
  std::size_t done = 0, free = 0;  // beginning of the text that was not handed on yet; first position where the next token may begin
  for (; !begins.empty(); begins.pop_back()) {
    const std::size_t at = begins.back().at;
    if (at < free) continue;
    const TextAutomaton::Node& node = backwards_.node(begins.back().node);
    const AddedToken& token = tokens_[node.id];
    std::size_t begin = at, end = at + node.size;
    free = end;
    if (token.special && special == Special::as_text) continue;
    if (token.single_word && (is_word_at(text, end) || (begin > 0 && is_word_at(text, previous_character(text, begin))))) continue;
    if (token.left_strip) begin = std::max(done, spaces_before(text, begin, std::min(done, begin)));
    if (token.right_strip) end = spaces_behind(text, end);
    if (begin > done) TESSERA_TRY_STATUS(part(done, begin, kText));
    // Nothing may be left of the token, if it is white space that the token before has taken.
    if (begin < end) TESSERA_TRY_STATUS(part(begin, end, token.id));
    done = end;
  }
  return done < text.size() ? part(done, text.size(), kText) : Status();
}

}  // namespace tessera::detail

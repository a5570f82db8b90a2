// The list to which the tokens of an encoded text are added. Its memory is bounded by the size of the text. (A std::vector that doubles
// when it is full would take up to three times its final size while it grows.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tessera/core/token.hpp>

namespace tessera::detail {

class TokenList {
 public:
  // Most texts have about one token for four bytes. Few have more than one for two bytes.
  explicit TokenList(std::size_t text_bytes) : bound_(text_bytes + 4) { tokens_.reserve(text_bytes / 4 + 2); }

  void add(std::uint32_t id) {
    if (tokens_.size() == tokens_.capacity()) reserve(1);
    tokens_.push_back(static_cast<Token>(id));
  }
  // Makes sure that `more` further tokens fit.
  void reserve(std::size_t more) {
    const std::size_t needed = tokens_.size() + more;
    if (needed <= tokens_.capacity()) return;
    // A text has more tokens than bytes only if spaces are added, or characters are spelled as byte tokens. So the list doubles up to about
    // one token for each byte, and grows slowly beyond.
    const std::size_t capacity = tokens_.capacity();
    const std::size_t grown = needed <= bound_ ? std::min(2 * capacity, bound_) : capacity + capacity / 4;
    tokens_.reserve(std::max(needed, grown));
  }
  [[nodiscard]] std::vector<Token> take() && noexcept { return std::move(tokens_); }

 private:
  std::vector<Token> tokens_;
  std::size_t bound_;
};

}  // namespace tessera::detail

#include <tessera/extend/text/detokenizer.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/utf8.hpp"
#include "text/pipeline/decoder.hpp"

namespace tessera {

using namespace detail;

Detokenizer::Detokenizer() noexcept : Detokenizer(Tokenizer()) {}
Detokenizer::Detokenizer(Tokenizer tokenizer, DecodeOptions options) noexcept
    : tokenizer_(std::move(tokenizer)), options_(options), at_start_(options.start == TextStart::sequence) {}

Result<std::string> Detokenizer::push(Token token) noexcept {
  return guard([&]() -> Result<std::string> {
    if (tokenizer_.vocab_size() == 0) return no_tokenizer_error();
    if (token < 0 || static_cast<std::size_t>(token) >= tokenizer_.vocab_size()) {
      return make_error(ErrorCode::invalid_argument, "token {} is not in a vocabulary of {}", token,
                        tokenizer_.vocab_size());
    }
    const TokenType type = tokenizer_.type(token);
    const bool control = tokenizer_.is_control(token);
    if (control && options_.control == ControlText::omit) return std::string();
    std::string_view piece = control ? tokenizer_.text(token) : tokenizer_.piece(token);
    std::optional<Decoder::Runner> runner;
    std::uint8_t to_strip = to_strip_;
    bool holds_space = false;
    const Decoder* decoder = tokenizer_.decoder();
    if (decoder != nullptr) {
      if (at_start_ || control) {  // a stored piece is that of a token that is not the first, so the token is decoded anew
        TESSERA_TRY(runner, Decoder::Runner::create(*decoder));
        TESSERA_TRY(piece, runner->run(tokenizer_.text(token), at_start_));
      }
      if (at_start_ && options_.start == TextStart::sequence) to_strip = decoder->strips();
      for (; to_strip > 0 && piece.starts_with(decoder->stripped()); --to_strip) piece.remove_prefix(decoder->stripped().size());
      if (!piece.empty()) to_strip = 0;
      holds_space = decoder->ends_word(tokenizer_.text(token)) && piece.ends_with(' ');
      if (holds_space) piece.remove_suffix(1);
    } else {
      // If the vocabulary adds a space before a text (adds_space_prefix()), the first token's text begins with that space, and decoding
      // removes it. The space is always a part of an ordinary token: the texts of control, user-defined and byte tokens stay as they are.
      const bool merged = !control && type != TokenType::user_defined && type != TokenType::byte;
      if (at_start_ && merged && tokenizer_.adds_space_prefix() && piece.starts_with(' ')) piece.remove_prefix(1);
    }

    std::string bytes;
    bytes.reserve(held_size_ + piece.size() + 1);
    bytes.append(held_.data(), held_size_);
    if (holds_space_) bytes += ' ';
    bytes.append(piece);
    std::string text;
    text.reserve(bytes.size());
    std::string_view rest = bytes;
    while (!rest.empty()) {
      const Utf8Step step = utf8_step(rest);
      if (step.kind == Utf8Kind::incomplete) break;
      text.append(step.kind == Utf8Kind::valid ? rest.substr(0, step.size) : kReplacement);
      rest.remove_prefix(step.size);
    }
    // From here on nothing can fail.
    held_size_ = static_cast<std::uint8_t>(rest.size());
    std::copy(rest.begin(), rest.end(), held_.begin());
    if (!control || decoder != nullptr) at_start_ = false;
    to_strip_ = to_strip;
    holds_space_ = holds_space;
    return text;
  });
}

std::string Detokenizer::finish() noexcept {
  const bool incomplete = held_size_ > 0;
  held_size_ = 0;
  to_strip_ = 0;
  holds_space_ = false;
  at_start_ = options_.start == TextStart::sequence;
  return incomplete ? std::string(kReplacement) : std::string();  // U+FFFD is three bytes, so the string does not allocate
}

}  // namespace tessera

// The decoders of a tokenizer.json: they turn tokens into text. A token's bytes depend on its own text, on whether it is the first token,
// and, in few decoders, on whether it is the last token. So a stream can be decoded token by token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/result.hpp>

#include "text/pipeline/regex.hpp"

namespace tessera::detail {

struct DecoderStep {
  enum class Kind : std::uint8_t {
    bytes,          // GPT-2's alphabet becomes the bytes that it stands for
    replace,        // each match of `pattern` becomes `text`
    byte_fallback,  // "<0x0A>" becomes its byte
    strip,          // `text`, a character, is dropped at the token's ends: at most `left` times in front and `right` times at the end
    metaspace,      // `text`, the mark, becomes a space, and nothing in the first token if `drops_first`
    word_piece,     // a token without the prefix `text` gets a space in front, unless it is the first
    clean_up,       // spaces in front of punctuation and of some English endings are dropped
    end_of_word,    // the suffix `text` becomes a space, and nothing in the last token
    spaces          // every token but the first gets a space in front
  };
  Kind kind;
  Regex pattern{};
  std::string text{};
  std::uint64_t left = 0, right = 0;
  bool drops_first = false;
};

class [[gnu::visibility("hidden")]] Decoder {
 public:
  Decoder() noexcept = default;  // returns tokens unchanged
  // `stripped`: a character, which is dropped at the beginning of the whole text, at most `strips` times.
  Decoder(std::vector<DecoderStep> steps, std::string stripped, std::uint8_t strips) noexcept
      : steps_(std::move(steps)), stripped_(std::move(stripped)), strips_(strips) {}

  [[nodiscard]] std::string_view stripped() const noexcept { return stripped_; }
  [[nodiscard]] std::uint8_t strips() const noexcept { return strips_; }
  // Returns whether the last space of the token's bytes is dropped if the token is the last one.
  [[nodiscard]] bool ends_word(std::string_view token) const noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;

  // Decodes tokens, with working memory of its own.
  class [[gnu::visibility("hidden")]] Runner {
   public:
    [[nodiscard]] static Result<Runner> create(const Decoder& decoder);
    // Returns the bytes of a token, on the assumption that another token follows it. `first`: whether it is the first token. The result
    // is `token` itself or a view into this object, valid until the next call. Error: unsupported, a pattern takes too much work.
    [[nodiscard]] Result<std::string_view> run(std::string_view token, bool first);

   private:
    [[nodiscard]] Status run_step(std::size_t step, bool first, std::string& text);

    const Decoder* decoder_ = nullptr;
    std::vector<Regex::Finder> finders_;  // [steps]; empty objects for steps without a pattern
    std::string text_, scratch_;
  };

 private:
  std::vector<DecoderStep> steps_;
  std::string stripped_;
  std::uint8_t strips_ = 0;
};

}  // namespace tessera::detail

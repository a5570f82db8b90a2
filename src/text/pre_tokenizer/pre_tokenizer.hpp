// Splits text into the words that byte-level BPE encodes one by one, with the model's patterns (pre_tokenizer_patterns.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <tessera/core/result.hpp>

#include "text/pre_tokenizer/pre_tokenizer_patterns.hpp"

namespace tessera::detail {

class PreTokenizer {
 public:
  PreTokenizer() noexcept;  // an empty object, which can only be assigned to
  [[nodiscard]] static Result<PreTokenizer> create(const PreTokenizerSpec& spec);
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  [[nodiscard]] const PreTokenizerSpec& spec() const noexcept { return *spec_; }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;
  // Upper bound for plans: compiled patterns take 2 to 10 KiB, and the JIT's machine code takes further pages.
  static constexpr std::uint64_t kPlannedBytes = 64 << 10;

  // Splits texts, with working memory that lasts for one encode() call of the tokenizer.
  class Splitter {
   public:
    Splitter() noexcept;  // an empty object, which can only be assigned to
    [[nodiscard]] static Result<Splitter> create(const PreTokenizer& owner, std::size_t longest_text);
    Splitter(Splitter&&) noexcept;
    Splitter& operator=(Splitter&&) noexcept;
    ~Splitter();
    // Calls word() for each word of `text`, in order. The words together are the whole text. Precondition: `text` is valid UTF-8.
    using Word = std::function<void(std::string_view)>;
    [[nodiscard]] Status split(std::string_view text, const Word& word);

   private:
    struct Match;
    Splitter(const PreTokenizer& owner, std::unique_ptr<Match> match) noexcept;
    // A part of the text, and how PCRE2 sees it (with_older_characters()).
    struct Piece {
      std::string_view text, matched;
    };
    [[nodiscard]] Status split_from(std::size_t pattern, Piece piece, const Word& word);

    const PreTokenizer* owner_ = nullptr;
    std::unique_ptr<Match> match_;
    std::string older_;
  };

 private:
  struct Compiled;
  PreTokenizer(const PreTokenizerSpec& spec, std::unique_ptr<Compiled> compiled) noexcept;
  const PreTokenizerSpec* spec_ = nullptr;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace tessera::detail

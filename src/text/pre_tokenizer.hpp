// Splits text into the words that byte-level BPE works on, with a model's patterns (pre_tokenizer_patterns.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <tessera/core/result.hpp>

#include "text/pre_tokenizer_patterns.hpp"

namespace tessera::detail {

class PreTokenizer {
 public:
  [[nodiscard]] static Result<PreTokenizer> create(std::string_view name);
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  [[nodiscard]] const PreTokenizerSpec& spec() const noexcept { return *spec_; }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;
  // Compiled patterns measure 2 to 10 KiB; machine code has pages of its own.
  static constexpr std::uint64_t kPlannedBytes = 64 << 10;

  // Working memory of one encode() call.
  class Splitter {
   public:
    [[nodiscard]] static Result<Splitter> create(const PreTokenizer& owner, std::size_t longest_text);
    Splitter(Splitter&&) noexcept;
    Splitter& operator=(Splitter&&) noexcept;
    ~Splitter();
    // The lengths of the words of `text`, which is valid UTF-8; together they are text.size(). Valid until the next
    // call.
    [[nodiscard]] Result<const std::vector<std::uint32_t>*> split(std::string_view text);

   private:
    struct Match;
    Splitter(const PreTokenizer& owner, std::unique_ptr<Match> match) noexcept;
    [[nodiscard]] Status split_piece(std::size_t pattern, std::string_view piece);

    const PreTokenizer* owner_;
    std::unique_ptr<Match> match_;
    std::vector<std::uint32_t> words_, pieces_;
  };

 private:
  struct Compiled;
  PreTokenizer(const PreTokenizerSpec& spec, std::unique_ptr<Compiled> compiled) noexcept;
  const PreTokenizerSpec* spec_;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace tessera::detail

// Tokens that are found in a text before anything else looks at it: user-defined ones always, control and unknown ones
// when they are to be parsed.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/vocabulary.hpp"

namespace tessera::detail {

struct SpecialMatch {
  std::uint32_t begin, size, id;
};

class SpecialTokens {
 public:
  explicit SpecialTokens(const Vocabulary& vocabulary);
  [[nodiscard]] static std::uint64_t plan_bytes(const GgufFile& file) noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept { return sorted_.capacity() * sizeof(std::uint32_t); }

  // The matches in `text`, by position, none overlapping. The longest token of all is placed first wherever it stands,
  // then the next (llama.cpp's tokenizer_st_partition); of equal length the lower id, then the leftmost.
  [[nodiscard]] std::vector<SpecialMatch> find(const Vocabulary& vocabulary, std::string_view text,
                                               Special special) const;

 private:
  [[nodiscard]] SpecialMatch longest_at(const Vocabulary& vocabulary, std::string_view text, std::uint32_t begin,
                                        std::size_t limit, Special special) const noexcept;

  std::vector<std::uint32_t> sorted_;              // ids by text, bytewise
  std::array<std::uint32_t, 257> first_byte_{};    // where the texts that begin with each byte stand in sorted_
  bool any_user_defined_ = false;
};

}  // namespace tessera::detail

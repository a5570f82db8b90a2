// The table of SentencePiece's normaliser: byte sequences, each with the text that replaces it (tokenizer.ggml.precompiled_charsmap).
// Layout of the table in model files: a u32, which is the size of a trie in bytes; the trie, which contains the sequences; the
// replacements, each with a zero byte at its end. The trie is a double array of 32-bit units, as Darts makes it (Yata, 2007; github
// s-yata/darts-clone). The file's trie is not checked, so the search must be safe with any contents.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tessera/core/result.hpp>

namespace tessera::detail {

class Charsmap {
 public:
  static constexpr std::size_t kLongestReplacement = 1024;  // in bytes; replacements of Unicode's normal forms have at most 33

  // Checks the sizes in a file's table. The error says what is wrong, but not in which file and setting; the caller adds that. After a
  // successful check, find() is safe whatever the trie contains.
  [[nodiscard]] static Status check(std::string_view blob);

  Charsmap() = default;
  explicit Charsmap(std::string_view blob);  // precondition: `blob` has passed check(); an empty one replaces nothing
  bool operator==(const Charsmap&) const = default;

  struct Found {
    std::size_t size;  // number of bytes at the beginning of the text that are replaced; 0: none
    std::string_view replacement;
  };
  // Returns the longest sequence at the beginning of `text` that has a replacement, and that replacement.
  [[nodiscard]] Found find(std::string_view text) const noexcept;
  // Returns the shortest sequence at the beginning of `text` that has a replacement, and that replacement.
  [[nodiscard]] Found find_shortest(std::string_view text) const noexcept;

  [[nodiscard]] static std::uint64_t plan_bytes(std::uint64_t blob) noexcept { return blob; }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept {
    return units_.capacity() * sizeof(std::uint32_t) + replacements_.capacity();
  }
  template <class Add>
  void each_part(const Add& add) const {
    add(units_), add(replacements_);
  }

 private:
  template <class Accept>
  void each_found(std::string_view text, const Accept& accept) const noexcept;

  std::vector<std::uint32_t> units_;
  std::vector<char> replacements_;
};

}  // namespace tessera::detail

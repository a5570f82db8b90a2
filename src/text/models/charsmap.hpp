// SentencePiece's normaliser: sequences of bytes, and the replacement of each (tokenizer.ggml.precompiled_charsmap). The layout in model
// files: u32 bytes of a trie, the trie, then replacements that each end with a zero byte. The trie is Darts' double array (Yata, 2007;
// github s-yata/darts-clone): units of 32 bits whose contents nobody has checked.
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
  static constexpr std::size_t kLongestReplacement = 1024;  // in bytes; Unicode's own have at most 33

  // Checks a file's bytes. The error says what is wrong; the caller adds where. Bytes that pass do no harm, whatever is in the trie.
  [[nodiscard]] static Status check(std::string_view blob);

  Charsmap() = default;
  explicit Charsmap(std::string_view blob);  // precondition: passed check(); empty: nothing is replaced
  bool operator==(const Charsmap&) const = default;

  struct Found {
    std::size_t size;  // bytes at the start of the text that are replaced; 0: none
    std::string_view replacement;
  };
  // Returns the longest sequence at the start of `text` that is replaced.
  [[nodiscard]] Found find(std::string_view text) const noexcept;

  [[nodiscard]] static std::uint64_t plan_bytes(std::uint64_t blob) noexcept { return blob; }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept {
    return units_.capacity() * sizeof(std::uint32_t) + replacements_.capacity();
  }
  template <class Add>
  void each_part(const Add& add) const {
    add(units_), add(replacements_);
  }

 private:
  std::vector<std::uint32_t> units_;
  std::vector<char> replacements_;
};

}  // namespace tessera::detail

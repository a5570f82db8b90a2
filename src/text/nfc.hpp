// Brings texts into Unicode's normal form C (UAX 15): a letter and a mark that are written separately become one character if there is
// one, and several marks are put into one order. The tokenizers of some models normalise texts in this way first. utf8proc decomposes and
// composes. The marks are ordered here, because utf8proc takes quadratic time for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

// The change that a character can undergo when a text is normalised.
enum class Joining : std::uint8_t {
  normal,   // the character stays as it is, and does not join the character before it
  changes,  // the character becomes another character or several, but does not join the character before it
  joins     // the character may be composed with the character before it, or change places with it
};
[[nodiscard]] Joining joining_of(std::int32_t code_point) noexcept;

// Normalises texts, with working memory that lasts for one encode() call of the tokenizer.
class Nfc {
 public:
  // Returns the normal form of `text`, which must be valid UTF-8. If `text` is normal already, returns it. Otherwise returns a view into
  // this object, valid until the next call. Takes linear time, apart from sorting n consecutive marks in n log n. (Real texts have few
  // consecutive marks.) The normal form has at most three times the bytes of the text.
  [[nodiscard]] std::string_view normalize(std::string_view text);

  static constexpr std::size_t kMostGrowth = 3;

 private:
  void decompose(std::string_view segment);
  void order_marks();
  void compose();

  std::string normal_;                // the normal form so far; used only if it differs from the text
  std::vector<std::int32_t> points_;  // code points of a segment; until they are ordered, each with its combining class above bit 21
  std::string composed_;              // normal form of a segment
};

}  // namespace tessera::detail

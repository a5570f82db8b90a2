// Unicode's normal form C (UAX 15): characters that are written in parts are put together, and marks stand in one order. The tokenizers of
// some models bring a text into this form first. Decomposition and composition are utf8proc's. The rest is done here, because utf8proc
// orders marks in quadratic time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

// The effect of a character on the character in front of it.
enum class Joining : std::uint8_t {
  normal,   // none; and by itself it is normal
  changes,  // none; and by itself it becomes another character, or several
  joins     // it may become one with the character in front, or change places with it
};
[[nodiscard]] Joining joining_of(std::int32_t code_point) noexcept;

// Working memory of one encode() call.
class Nfc {
 public:
  // Returns the normal form of `text`, which must be valid UTF-8: `text` itself if that is normal, else a view into this object that lasts
  // until the next call. Time: n log n (in the marks of a row), and n for all texts that people write. A normal form has at most three
  // times the bytes of its text.
  [[nodiscard]] std::string_view normalize(std::string_view text);

  static constexpr std::size_t kMostGrowth = 3;

 private:
  void decompose(std::string_view segment);
  void order_marks();
  void compose();

  std::string normal_;                // the normal form so far, if it differs from the text
  std::vector<std::int32_t> points_;  // a segment's code points, while they are decomposed with their class above bit 21
  std::string composed_;              // a segment's normal form
};

}  // namespace tessera::detail

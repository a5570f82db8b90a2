// Finds stop strings in a text that arrives in pieces. Passes text on as soon as it cannot be part of a stop string any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <tessera/extend/text/marked_text.hpp>

namespace tessera::detail {

enum class More : std::uint8_t { no, yes };  // yes: more text follows

// Finds the first stop string in a text. Stop strings do not count within marked stretches of the text (MarkedText, for example reasoning),
// nor if they cross the border of a stretch. The matcher holds text back while it may be the beginning of a stop string or of a marker. So
// the result does not depend on how the text is cut into pieces.
class StopMatcher {
 public:
  // `stops` and `marked` must outlive the matcher. Empty strings in them never match. If `begins_marked` is true, the text begins within a
  // stretch of the kind marked[0].
  explicit StopMatcher(std::span<const std::string> stops, std::span<const MarkedText> marked = {}, bool begins_marked = false) noexcept
      : stops_(stops), marked_(marked), within_(begins_marked && !marked.empty() ? marked.data() : nullptr) {}

  struct Passed {
    std::string text;  // text that is passed on
    std::int32_t stop; // index of the stop string that was found; `text` ends before it; -1: none
    [[nodiscard]] bool stopped() const noexcept { return stop >= 0; }
  };
  // Adds `text`, and returns the text that can be passed on now. With More::no no further text comes, so all held back text is passed on
  // too. If push() throws, nothing has changed.
  [[nodiscard]] Passed push(std::string text, More more);

 private:
  struct Marker {
    // The place of a marker in the text: its offset and size. If `size` is 0, no complete marker was found. Then `at` is where a marker may
    // begin that is not complete yet; if none may begin, `at` is the text's end.
    std::size_t at, size = 0;
    const MarkedText* opens = nullptr;   // the kind of stretch that the marker opens; nullptr: the marker closes a stretch
  };
  [[nodiscard]] Marker find_open(std::string_view text, std::size_t from, More more) const noexcept;
  [[nodiscard]] Marker find_close(std::string_view text, std::size_t from, More more) const noexcept;

  std::span<const std::string> stops_;
  std::span<const MarkedText> marked_;
  const MarkedText* within_;  // the kind of stretch at the present position; nullptr: none
  std::string held_;          // text held back, because it may become a stop string or a marker
};

}  // namespace tessera::detail

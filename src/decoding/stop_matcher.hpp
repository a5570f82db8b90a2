// Finds stop strings in text that arrives in pieces. Text is let through as soon as no stop string can begin in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <tessera/text/marked_text.hpp>

namespace tessera::detail {

enum class More : std::uint8_t { no, yes };  // yes: more text follows

// Does not look for stop strings within marked stretches (MarkedText), nor across their borders. Text that may begin a marker is held
// back until it is certain whether it does. So the outcome does not depend on where the text is cut into pieces.
class StopMatcher {
 public:
  // `stops` and `marked` must outlive the matcher; empty strings never match. `begins_marked`: the text begins within the first
  // of the stretches.
  explicit StopMatcher(std::span<const std::string> stops, std::span<const MarkedText> marked = {}, bool begins_marked = false) noexcept
      : stops_(stops), marked_(marked), within_(begins_marked && !marked.empty() ? marked.data() : nullptr) {}

  struct Step {
    std::string text;  // text that is let through
    std::int32_t stop; // index of the stop string found, before which `text` ends; -1: none
    [[nodiscard]] bool stopped() const noexcept { return stop >= 0; }
  };
  // Adds text. With More::no, all text that was held back is let through. If push() throws, nothing has changed.
  [[nodiscard]] Step push(std::string text, More more);

 private:
  struct Marker {
    std::size_t at, size = 0;            // size 0: no whole marker was found, but one may begin at `at` (at the text's end: none)
    const MarkedText* opens = nullptr;   // the stretch that the marker opens; nullptr: the marker closes a stretch
  };
  [[nodiscard]] Marker find_open(std::string_view text, std::size_t from, More more) const noexcept;
  [[nodiscard]] Marker find_close(std::string_view text, std::size_t from, More more) const noexcept;

  std::span<const std::string> stops_;
  std::span<const MarkedText> marked_;
  const MarkedText* within_;  // the stretch that the text is in; nullptr: none
  std::string held_;          // text held back, since it may become a stop string or a marker
};

}  // namespace tessera::detail

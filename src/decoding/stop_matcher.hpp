// Finds stop strings in text that arrives in pieces. Text is let through as soon as no stop string can begin in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <tessera/text/marked_text.hpp>

namespace tessera::detail {

enum class More : std::uint8_t { no, yes };  // whether text follows

// Stop strings are not looked for within marked stretches, nor across their borders. What may be the beginning of a marker waits
// until it is known, so that the outcome does not depend on how the text is cut there.
class StopMatcher {
 public:
  // `stops` and `marked` must outlive the matcher; empty strings never match. `begins_marked`: the text begins within the first
  // of the stretches.
  explicit StopMatcher(std::span<const std::string> stops, std::span<const MarkedText> marked = {}, bool begins_marked = false) noexcept
      : stops_(stops), marked_(marked), within_(begins_marked && !marked.empty() ? marked.data() : nullptr) {}

  struct Step {
    std::string text;  // certain now
    std::int32_t stop; // the stop string that is complete, by its index: `text` ends before it; -1: none is
    [[nodiscard]] bool stopped() const noexcept { return stop >= 0; }
  };
  // The last text lets everything through that was held back. If it throws, nothing has changed.
  [[nodiscard]] Step push(std::string text, More more);

 private:
  struct Marker {
    std::size_t at, size = 0;            // size 0: one may begin at `at`, or, at the text's end, there is none
    const MarkedText* opens = nullptr;
  };
  [[nodiscard]] Marker find_open(std::string_view text, std::size_t from, More more) const noexcept;
  [[nodiscard]] Marker find_close(std::string_view text, std::size_t from, More more) const noexcept;

  std::span<const std::string> stops_;
  std::span<const MarkedText> marked_;
  const MarkedText* within_;  // the stretch that the text is in; nullptr: none
  std::string held_;          // what may become a stop string or a marker, or nothing
};

}  // namespace tessera::detail

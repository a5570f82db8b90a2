// Finds stop strings in text that arrives in pieces. Text is let through as soon as no stop string can begin in it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tessera::detail {

enum class More : std::uint8_t { no, yes };  // whether text follows

class StopMatcher {
 public:
  // `stops` must outlive the matcher; empty strings never match.
  explicit StopMatcher(std::span<const std::string> stops) noexcept : stops_(stops) {}

  struct Step {
    std::string text;  // certain now
    std::int32_t stop; // the stop string that is complete, by its index: `text` ends before it; -1: none is
    [[nodiscard]] bool stopped() const noexcept { return stop >= 0; }
  };
  // The last text lets everything through that was held back. If it throws, nothing has changed.
  [[nodiscard]] Step push(std::string text, More more);

 private:
  std::span<const std::string> stops_;
  std::string held_;  // a proper beginning of a stop string, or nothing
};

}  // namespace tessera::detail

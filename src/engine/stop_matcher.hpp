// Finds stop strings in text that arrives in pieces. Text is let through as soon as no stop string can begin in it.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tessera::detail {

class StopMatcher {
 public:
  // `stops` must outlive the matcher; empty strings never match.
  explicit StopMatcher(std::span<const std::string> stops) noexcept : stops_(stops) {}

  struct Step {
    std::string text;  // certain now
    bool stopped;      // a stop string is complete: `text` ends before it
  };
  [[nodiscard]] Step push(std::string_view text);
  // The end: what was held back.
  [[nodiscard]] std::string finish();

 private:
  std::span<const std::string> stops_;
  std::string held_;  // a proper beginning of a stop string, or nothing
};

}  // namespace tessera::detail

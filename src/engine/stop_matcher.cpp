#include "engine/stop_matcher.hpp"

#include <algorithm>
#include <utility>

namespace tessera::detail {

StopMatcher::Step StopMatcher::push(std::string_view text) {
  held_ += text;
  std::size_t match = std::string::npos;
  for (const std::string& stop : stops_) {
    if (!stop.empty()) match = std::min(match, held_.find(stop));
  }
  if (match != std::string::npos) {
    Step step{held_.substr(0, match), true};
    held_.clear();
    return step;
  }
  // The longest end of the text that is the beginning of a stop string stays.
  std::size_t keep = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t n = std::min(held_.size(), stop.empty() ? 0 : stop.size() - 1); n > keep; --n) {
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, n))) keep = n;
    }
  }
  Step step{held_.substr(0, held_.size() - keep), false};
  held_.erase(0, held_.size() - keep);
  return step;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace tessera::detail

#include "decoding/stop_matcher.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tessera::detail {

StopMatcher::Step StopMatcher::push(std::string text, More more) {
  if (!held_.empty()) text.insert(0, held_);
  std::size_t match = std::string::npos;
  for (const std::string& stop : stops_) {
    if (!stop.empty()) match = std::min(match, text.find(stop));
  }
  if (match != std::string::npos) {
    text.resize(match);
    held_.clear();
    return {std::move(text), true};
  }
  // The longest end of the text that is the beginning of a stop string stays.
  std::size_t keep = 0;
  for (const std::string& stop : stops_) {
    if (more == More::no) break;
    for (std::size_t n = std::min(text.size(), stop.empty() ? 0 : stop.size() - 1); n > keep; --n) {
      if (std::string_view(text).ends_with(std::string_view(stop).substr(0, n))) keep = n;
    }
  }
  held_.assign(text, text.size() - keep);  // throws before it changes
  text.resize(text.size() - keep);
  return {std::move(text), false};
}

}  // namespace tessera::detail

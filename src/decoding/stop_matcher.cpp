#include "decoding/stop_matcher.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tessera::detail {

StopMatcher::Step StopMatcher::push(std::string text, More more) {
  if (!held_.empty()) text.insert(0, held_);
  std::size_t match = std::string::npos;
  std::int32_t which = -1;
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    const std::size_t at = stops_[i].empty() ? std::string::npos : text.find(stops_[i]);
    if (at >= match) continue;
    match = at;
    which = static_cast<std::int32_t>(i);
  }
  if (which >= 0) {
    text.resize(match);
    held_.clear();
    return {std::move(text), which};
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
  return {std::move(text), -1};
}

}  // namespace tessera::detail

#include "decoding/stop_matcher.hpp"

#include <algorithm>
#include <utility>

namespace tessera::detail {
namespace {

struct At {
  std::size_t at = std::string::npos;
  std::int32_t which = -1;
};

// Returns the first position in the text where a complete stop string begins, and the index of that stop string. If several begin there,
// returns the first of them in `stops`.
At first_stop(std::string_view text, std::span<const std::string> stops) noexcept {
  At first;
  for (std::size_t i = 0; i < stops.size(); ++i) {
    const std::size_t at = stops[i].empty() ? std::string::npos : text.find(stops[i]);
    if (at < first.at) first = {at, static_cast<std::int32_t>(i)};
  }
  return first;
}

// Returns the first position in [begin, end) from which text must be held back, because a stop string may begin there. Either the text ends
// before the string is complete, or the string is complete but reaches beyond `end`, where a marker may begin. Returns `end` if there is no
// such position.
std::size_t begun_stop(std::string_view text, std::size_t begin, std::size_t end, std::span<const std::string> stops) noexcept {
  for (std::size_t at = begin; at < end; ++at) {
    const std::string_view rest = text.substr(at);
    for (const std::string& stop : stops) {
      if (!stop.empty() && (rest.starts_with(stop) || std::string_view(stop).starts_with(rest))) return at;
    }
  }
  return end;
}

}  // namespace

StopMatcher::Marker StopMatcher::find_open(std::string_view text, std::size_t from, More more) const noexcept {
  for (std::size_t at = from; at < text.size() && !marked_.empty(); ++at) {
    const std::string_view rest = text.substr(at);
    Marker found{.at = at};
    bool unsure = false;  // true: the text ends with the beginning of a marker, which may be longer than `found`
    for (const MarkedText& stretch : marked_) {
      for (const std::string& open : stretch.open) {
        if (open.empty()) continue;
        if (rest.starts_with(open)) {
          if (open.size() > found.size) found = {at, open.size(), &stretch};
        } else {
          unsure = unsure || (more == More::yes && open.starts_with(rest));
        }
      }
    }
    if (unsure) return {.at = at};
    if (found.size > 0) return found;
  }
  return {.at = text.size()};
}

StopMatcher::Marker StopMatcher::find_close(std::string_view text, std::size_t from, More more) const noexcept {
  for (std::size_t at = from; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    for (const std::string& close : within_->close) {
      if (close.empty()) continue;
      if (rest.starts_with(close)) return {at, close.size()};
      if (more == More::yes && close.starts_with(rest)) return {.at = at};
    }
  }
  return {.at = text.size()};
}

StopMatcher::Passed StopMatcher::push(std::string text, More more) {
  if (!held_.empty()) text.insert(0, held_);
  const MarkedText* within = within_;
  std::size_t begin = 0;  // the text before this offset can be passed on
  for (;;) {
    if (within_ != nullptr) {
      const Marker close = find_close(text, begin, more);
      begin = close.at + close.size;
      if (close.size == 0) break;
      within_ = nullptr;
      continue;
    }
    const Marker open = find_open(text, begin, more);
    const std::string_view between = std::string_view(text).substr(begin, open.at - begin);
    if (const At stop = first_stop(between, stops_); stop.which >= 0) {
      text.resize(begin + stop.at);
      held_.clear();
      return {std::move(text), stop.which};
    }
    if (open.size == 0) {
      begin = more == More::yes ? begun_stop(text, begin, open.at, stops_) : open.at;
      break;
    }
    begin = open.at + open.size;
    within_ = open.opens;
  }
  try {
    held_.assign(text, begin);
  } catch (...) {
    within_ = within;
    throw;
  }
  text.resize(begin);
  return {std::move(text), -1};
}

}  // namespace tessera::detail

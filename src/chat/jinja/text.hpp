// Text that remembers for each of its bytes whether the template or a message has written it. All strings of the evaluator are Texts.
// Whatever a template does to a message's text (slicing, trimming, joining), the result still knows which bytes are the message's. So a
// message cannot bring control tokens into the prompt (encode.cpp).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/chat/chat_template.hpp>

namespace tessera::jinja {

class Text {
 public:
  Text() = default;
  Text(std::string bytes, TextOrigin origin) : bytes_(std::move(bytes)) {
    if (!bytes_.empty()) runs_.push_back({bytes_.size(), origin});
  }

  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }
  // Returns how many bytes of heap memory the text takes.
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return bytes_.capacity() + runs_.capacity() * sizeof(Run); }

  void append(std::string_view bytes, TextOrigin origin) {
    if (bytes.empty()) return;
    bytes_.append(bytes);
    extend(origin);
  }
  void append(const Text& other) { append(other, 0, other.size()); }
  // Appends the bytes [begin, end) of another text, with their origins.
  void append(const Text& other, std::size_t begin, std::size_t end) {
    other.for_each(begin, end, [&](std::string_view piece, TextOrigin origin) { append(piece, origin); });
  }
  [[nodiscard]] Text slice(std::size_t begin, std::size_t end) const {
    Text part;
    part.bytes_.reserve(end - begin);
    part.append(*this, begin, end);
    return part;
  }

  // Calls fn(bytes, origin) for the whole text, piece by piece. All bytes of a piece have the same origin.
  template <class Fn>
  void for_each(Fn&& fn) const {
    for_each(0, size(), fn);
  }
  template <class Fn>
  void for_each(std::size_t begin, std::size_t end, Fn&& fn) const {
    std::size_t low = 0, high = runs_.size();  // binary search for the run that contains `begin`
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (runs_[middle].end <= begin) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    for (; begin < end; ++low) {
      const std::size_t stop = runs_[low].end < end ? runs_[low].end : end;
      fn(std::string_view(bytes_).substr(begin, stop - begin), runs_[low].origin);
      begin = stop;
    }
  }

  // Returns the origin of the byte at offset `at`. An empty text counts as the template's.
  [[nodiscard]] TextOrigin origin_at(std::size_t at) const {
    TextOrigin origin = TextOrigin::from_template;
    for_each(at, at < size() ? at + 1 : at, [&](std::string_view, TextOrigin of) { origin = of; });
    return origin;
  }
  // Returns whether appended bytes of this origin would belong to the last run, so that no new run is needed.
  [[nodiscard]] bool extends(TextOrigin origin) const noexcept { return !runs_.empty() && runs_.back().origin == origin; }
  // Returns from_message if at least one byte is from a message.
  [[nodiscard]] TextOrigin origin() const noexcept {
    for (const Run& run : runs_) {
      if (run.origin == TextOrigin::from_message) return TextOrigin::from_message;
    }
    return TextOrigin::from_template;
  }

 private:
  struct Run {
    std::size_t end;  // offset after the run's last byte
    TextOrigin origin;
  };
  void extend(TextOrigin origin) {
    if (extends(origin)) {
      runs_.back().end = bytes_.size();
    } else {
      runs_.push_back({bytes_.size(), origin});
    }
  }

  std::string bytes_;
  std::vector<Run> runs_;  // consecutive runs have different origins; the last one ends at bytes_.size()
};

}  // namespace tessera::jinja

// Text that remembers the origin of each byte. Every string of the evaluator is a Text: whatever a template does to a message's text
// (slices, trims, joins), the result still says which bytes were the message's.
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
  // Returns the bytes of memory beside the object itself.
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return bytes_.capacity() + runs_.capacity() * sizeof(Run); }

  void append(std::string_view bytes, TextOrigin origin) {
    if (bytes.empty()) return;
    bytes_.append(bytes);
    extend(origin);
  }
  void append(const Text& other) { append(other, 0, other.size()); }
  // Appends bytes [begin, end) of another text.
  void append(const Text& other, std::size_t begin, std::size_t end) {
    other.for_each(begin, end, [&](std::string_view piece, TextOrigin origin) { append(piece, origin); });
  }
  [[nodiscard]] Text slice(std::size_t begin, std::size_t end) const {
    Text part;
    part.bytes_.reserve(end - begin);
    part.append(*this, begin, end);
    return part;
  }

  // Calls fn(bytes, origin) for the whole text, in pieces of one origin each.
  template <class Fn>
  void for_each(Fn&& fn) const {
    for_each(0, size(), fn);
  }
  template <class Fn>
  void for_each(std::size_t begin, std::size_t end, Fn&& fn) const {
    std::size_t low = 0, high = runs_.size();  // the run that holds `begin`
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

  // Returns the origin of the byte at `at`. An empty text is the template's.
  [[nodiscard]] TextOrigin origin_at(std::size_t at) const {
    TextOrigin origin = TextOrigin::from_template;
    for_each(at, at < size() ? at + 1 : at, [&](std::string_view, TextOrigin of) { origin = of; });
    return origin;
  }
  // Returns whether bytes of this origin would lengthen the last run.
  [[nodiscard]] bool extends(TextOrigin origin) const noexcept { return !runs_.empty() && runs_.back().origin == origin; }
  // Returns from_message if any byte is from a message.
  [[nodiscard]] TextOrigin origin() const noexcept {
    for (const Run& run : runs_) {
      if (run.origin == TextOrigin::from_message) return TextOrigin::from_message;
    }
    return TextOrigin::from_template;
  }

 private:
  struct Run {
    std::size_t end;  // index behind the last byte
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
  std::vector<Run> runs_;  // ascending ends, the last at bytes_.size(); neighbours differ in origin
};

}  // namespace tessera::jinja

// Builds a Text piece by piece, and counts its growing size against the memory limit.
#pragma once

#include <string_view>
#include <utility>

#include "chat/jinja/budget.hpp"
#include "chat/jinja/text.hpp"
#include "chat/jinja/value.hpp"

namespace tessera::jinja {

class Builder {
 public:
  explicit Builder(Budget& budget) noexcept : budget_(budget) {}
  ~Builder() { budget_.give_back(taken_); }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  void add(std::string_view bytes, TextOrigin origin = TextOrigin::from_template) {
    if (bytes.empty()) return;
    count(bytes.size(), text_.extends(origin) ? 0 : kRun);
    text_.append(bytes, origin);
  }
  void add(const Text& text) { add(text, 0, text.size()); }
  void add(const Text& text, std::size_t begin, std::size_t end) {
    text.for_each(begin, end, [&](std::string_view piece, TextOrigin origin) { add(piece, origin); });
  }
  [[nodiscard]] const Text& text() const noexcept { return text_; }
  [[nodiscard]] Text take() { return std::move(text_); }
  [[nodiscard]] Value finish() {
    Text done = std::move(text_);
    budget_.give_back(std::exchange(taken_, 0));
    return make_string(budget_, std::move(done));
  }

 private:
  static constexpr std::size_t kRun = 24;  // memory that a Text takes for each run of bytes with the same origin
  void count(std::size_t bytes, std::size_t more) {
    budget_.spend_on(bytes);
    budget_.take(bytes + more);
    taken_ += bytes + more;
  }
  Budget& budget_;
  Text text_;
  std::uint64_t taken_ = 0;
};

}  // namespace tessera::jinja

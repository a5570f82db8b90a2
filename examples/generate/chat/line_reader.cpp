#include "chat/line_reader.hpp"

#include <array>
#include <cstdio>

#include <fmt/format.h>

#include "failure.hpp"
#include "output/terminal_modes.hpp"
#include "system/program.hpp"

using tessera::tool::is_terminal;
using tessera::tool::Standard;

namespace {

class PlainReader final : public LineReader {
 public:
  explicit PlainReader(Interrupts& interrupts)
      : interrupts_(interrupts), terminal_(::is_terminal(Standard::input) && ::is_terminal(Standard::error)) {
    modes_.hide_typing();
  }

  Line read(const std::string& prompt) override {
    if (terminal_) {
      fmt::print(stderr, "{}", prompt);
      std::fflush(stderr);
    }
    modes_.show_typing();
    Line line = read_shown();
    modes_.hide_typing();
    return line;
  }

  [[nodiscard]] bool is_terminal() const override { return terminal_; }

 private:
  Line read_shown() {
    std::string text;
    for (char byte = 0;;) {
      switch (next_byte(interrupts_, byte)) {
        case Input::interrupted: return {Line::Kind::interrupted};
        case Input::end: return text.empty() ? Line{} : Line{Line::Kind::text, std::move(text)};
        case Input::byte: break;
      }
      if (byte == '\n') return {Line::Kind::text, std::move(text)};
      if (text.size() == kLongestLine) throw Failure(tessera::ErrorCode::invalid_argument, "a line of over 16 MiB");
      text += byte;
    }
  }

  TerminalModes modes_;
  Interrupts& interrupts_;
  bool terminal_;
};

}  // namespace

Input next_byte(Interrupts& interrupts, char& byte) {
  // Bytes that were read from standard input and have not been returned yet. Static, because there is only one standard input.
  static std::array<char, 4096> buffer;
  static std::size_t at = 0, size = 0;
  while (at == size) {
    at = size = 0;
    if (const Input what = read_input(interrupts, buffer, size); what != Input::byte) return what;
  }
  byte = buffer[at++];
  return Input::byte;
}

std::unique_ptr<LineReader> make_line_reader(Interrupts& interrupts) {
#ifdef GENERATE_LIBEDIT
  if (::is_terminal(Standard::input) && ::is_terminal(Standard::error)) return make_edited_reader(interrupts);
#endif
  return std::make_unique<PlainReader>(interrupts);
}

#include "line_reader.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "failure.hpp"
#include "terminal_modes.hpp"

namespace {

[[noreturn]] void fail() {
  throw Failure(tessera::ErrorCode::io, fmt::format("standard input: cannot read: {}", std::strerror(errno)));
}

class PlainReader final : public LineReader {
 public:
  explicit PlainReader(Interrupts& interrupts)
      : interrupts_(interrupts), terminal_(isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1) {
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
    std::array<pollfd, 2> wait = {{{STDIN_FILENO, POLLIN, 0}, {interrupts.descriptor(), POLLIN, 0}}};
    if (poll(wait.data(), wait.size(), -1) < 0) {
      if (errno == EINTR) continue;
      fail();
    }
    if (wait[1].revents != 0) {
      (void)interrupts.clear();
      at = size = 0;
      return Input::interrupted;
    }
    const ssize_t n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (n < 0 && errno != EINTR && errno != EAGAIN) fail();
    if (n == 0) return Input::end;
    at = 0;
    size = n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  byte = buffer[at++];
  return Input::byte;
}

std::unique_ptr<LineReader> make_line_reader(Interrupts& interrupts) {
#ifdef GENERATE_LIBEDIT
  if (isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1) return make_edited_reader(interrupts);
#endif
  return std::make_unique<PlainReader>(interrupts);
}

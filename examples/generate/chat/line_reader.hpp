// Reads lines from standard input. On a terminal, lines can be edited and there is a history, if the program was built with libedit.
// The readers set the terminal's modes: text that is typed while no line is read is not shown, and waits for the next line.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "interrupts.hpp"
#include "system/standard_input.hpp"

inline constexpr std::size_t kLongestLine = std::size_t{16} << 20;  // bytes

struct Line {
  enum class Kind { text, interrupted, end };  // interrupted: Ctrl-C came, and the typed text is lost
  Kind kind = Kind::end;
  std::string text{};  // without the line end
};

class LineReader {
 public:
  virtual ~LineReader() = default;
  // Reads a line. Shows the prompt on standard error, and only on a terminal.
  [[nodiscard]] virtual Line read(const std::string& prompt) = 0;
  [[nodiscard]] virtual bool is_terminal() const = 0;  // true: a user types, and sees the prompt
};

[[nodiscard]] std::unique_ptr<LineReader> make_line_reader(Interrupts& interrupts);

// Waits for a byte of standard input or for Ctrl-C, and returns which came first. Both kinds of reader use this.
[[nodiscard]] Input next_byte(Interrupts& interrupts, char& byte);

#ifdef GENERATE_LIBEDIT
[[nodiscard]] std::unique_ptr<LineReader> make_edited_reader(Interrupts& interrupts);
#endif

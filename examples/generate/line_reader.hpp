// Lines from standard input: edited and with a history on a terminal where libedit was there when this was built, plain
// otherwise.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "interrupts.hpp"

inline constexpr std::size_t kLongestLine = std::size_t{16} << 20;  // bytes

struct Line {
  enum class Kind { text, interrupted, end };  // interrupted: by Ctrl-C, what was typed is gone
  Kind kind = Kind::end;
  std::string text{};  // without its line end
};

class LineReader {
 public:
  virtual ~LineReader() = default;
  // The prompt is shown on standard error, and only to a terminal.
  [[nodiscard]] virtual Line read(const std::string& prompt) = 0;
  [[nodiscard]] virtual bool is_terminal() const = 0;  // somebody types, and sees the prompt
};

[[nodiscard]] std::unique_ptr<LineReader> make_line_reader(Interrupts& interrupts);

// What both kinds wait with: whether a byte of standard input came before a Ctrl-C did.
enum class Input { byte, interrupted, end };
[[nodiscard]] Input next_byte(Interrupts& interrupts, char& byte);

#ifdef GENERATE_LIBEDIT
[[nodiscard]] std::unique_ptr<LineReader> make_edited_reader(Interrupts& interrupts);
#endif

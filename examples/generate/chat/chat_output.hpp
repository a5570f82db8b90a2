// Prints an answer as it comes: text and calls on standard output; reasoning dimmed on a terminal, and on
// standard error if standard output is a file or a pipe.
#pragma once

#include <string>
#include <string_view>

#include <tessera/extend/chat/output_parser.hpp>

class AnswerPrinter {
 public:
  AnswerPrinter();
  void add(const tessera::OutputDelta& delta);
  void end();  // ends the last line
  [[nodiscard]] bool had_broken_call() const { return broken_; }

 private:
  enum class Showing { nothing, text, reasoning, call };
  void show(Showing what);
  void write(std::string_view text);

  bool terminal_;
  Showing showing_ = Showing::nothing;
  bool wrote_ = false;        // has written to standard output
  bool ends_line_ = true;
  bool broken_ = false;       // a call could not be read
};

#include "chat/chat_output.hpp"

#include <cstdio>

#include <fmt/format.h>

#include "output/terminal.hpp"
#include "system/program.hpp"
#include "terminal_text.hpp"

using tessera::tool::is_terminal;
using tessera::tool::Standard;
using Kind = tessera::OutputDelta::Kind;

AnswerPrinter::AnswerPrinter() : terminal_(is_terminal(Standard::output)) {}

// Begins a new line when the kind changes, so that each kind has its own lines.
void AnswerPrinter::show(Showing what) {
  if (showing_ == what) return;
  const Showing before = std::exchange(showing_, what);
  if (before == Showing::reasoning) {
    if (terminal_) print("\033[0m");
    else std::fputs("\n", stderr);
  }
  if (!ends_line_) write("\n");
  if (before == Showing::reasoning && terminal_ && what == Showing::text) write("\n");
  if (what == Showing::reasoning && terminal_) print("\033[2m");
}

void AnswerPrinter::write(std::string_view text) {
  if (text.empty()) return;
  print(terminal_ ? tessera::tool::shown(text, tessera::tool::Lines::kept) : std::string(text));
  ends_line_ = text.back() == '\n';
  wrote_ = true;
}

void AnswerPrinter::add(const tessera::OutputDelta& delta) {
  switch (delta.kind) {
    case Kind::text:
      show(Showing::text);
      write(delta.text);
      break;
    case Kind::reasoning:
      show(Showing::reasoning);
      if (terminal_) write(delta.text);
      else fmt::print(stderr, "{}", is_terminal(Standard::error) ? tessera::tool::shown(delta.text, tessera::tool::Lines::kept) : delta.text);
      break;
    case Kind::call_begin:
      show(Showing::nothing);
      show(Showing::call);
      write(fmt::format("[{} ", delta.name));
      break;
    case Kind::call_arguments: write(delta.text); break;
    case Kind::call_end:
      write("]");
      if (delta.broken) broken_ = true;
      break;
  }
}

void AnswerPrinter::end() {
  show(Showing::nothing);
  if (!wrote_) print("\n");  // an answer has at least a line
  if (broken_) complain("a call could not be read whole: it is not run");
}

// The modes of the terminal on standard input.
#pragma once

// Shows or hides typed text on the terminal. Hidden text waits, and is part of the next line that is read; Ctrl-C does not discard it.
// The destructor restores the modes that the terminal had. Does nothing if standard input is no terminal, or if the program runs in the
// background. Only one object may exist at a time.
class TerminalModes {
 public:
  TerminalModes();
  TerminalModes(const TerminalModes&) = delete;
  TerminalModes& operator=(const TerminalModes&) = delete;
  ~TerminalModes();

  void show_typing() noexcept;
  void hide_typing() noexcept;

  // Restores the modes, and ends dimmed text on standard output. For code that ends the program without unwinding; any thread may call it.
  static void leave() noexcept;

 private:
  static void restore() noexcept;
};

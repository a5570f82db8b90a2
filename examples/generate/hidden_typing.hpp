// Keeps what is typed during an answer out of the answer.
#pragma once

// While one lives, the terminal does not show what is typed. Typed text waits and stands in the next line that is read.
// Does nothing where standard input is no terminal. One at a time.
class HiddenTyping {
 public:
  HiddenTyping();
  HiddenTyping(const HiddenTyping&) = delete;
  HiddenTyping& operator=(const HiddenTyping&) = delete;
  ~HiddenTyping();

  // Shows typed text again. For code that ends the program without unwinding; any thread may call it.
  static void restore() noexcept;
};

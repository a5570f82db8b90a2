// Hides text that is typed during an answer.
#pragma once

// While an object exists, the terminal does not show typed text; the text waits and is part of the next line that is read.
// Does nothing if standard input is no terminal. Make only one at a time.
class HiddenTyping {
 public:
  HiddenTyping();
  HiddenTyping(const HiddenTyping&) = delete;
  HiddenTyping& operator=(const HiddenTyping&) = delete;
  ~HiddenTyping();

  // Shows typed text again. For code that ends the program without unwinding; any thread may call it.
  static void restore() noexcept;
};

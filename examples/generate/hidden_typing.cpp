#include "hidden_typing.hpp"

#include <atomic>

#include <termios.h>
#include <unistd.h>

namespace {

termios usual;                     // the terminal's modes before typing was hidden
std::atomic<bool> hidden = false;  // `usual` is to be restored

}  // namespace

HiddenTyping::HiddenTyping() {
  if (tcgetattr(STDIN_FILENO, &usual) != 0 || (usual.c_lflag & ECHO) == 0) return;
  termios silent = usual;
  silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  if (tcsetattr(STDIN_FILENO, TCSANOW, &silent) == 0) hidden = true;
}

HiddenTyping::~HiddenTyping() { restore(); }

void HiddenTyping::restore() noexcept {
  if (hidden.exchange(false)) (void)tcsetattr(STDIN_FILENO, TCSANOW, &usual);
}

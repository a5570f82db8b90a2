#include "output/terminal_modes.hpp"

#include <atomic>

#include <termios.h>
#include <unistd.h>

namespace {

termios usual;                     // the modes at the start of the program
std::atomic<bool> changed = false;  // true: `usual` must be restored

// Switches local modes on and off, at once (TCSANOW). No typed text is lost, because the kernel keeps it as long as ICANON does not change.
void set(tcflag_t on, tcflag_t off) noexcept {
  if (!changed) return;
  termios modes = usual;
  modes.c_lflag = (modes.c_lflag | on) & ~off;
  (void)tcsetattr(STDIN_FILENO, TCSANOW, &modes);
}

}  // namespace

TerminalModes::TerminalModes() {
  // The kernel stops a background program that changes modes.
  changed = tcgetattr(STDIN_FILENO, &usual) == 0 && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

TerminalModes::~TerminalModes() { restore(); }

void TerminalModes::show_typing() noexcept { set(usual.c_lflag & ECHO, NOFLSH); }

void TerminalModes::hide_typing() noexcept { set(NOFLSH, ECHO); }

void TerminalModes::leave() noexcept {
  if (isatty(STDOUT_FILENO) == 1) (void)!write(STDOUT_FILENO, "\033[0m", 4);
  restore();
}

void TerminalModes::restore() noexcept {
  if (changed.exchange(false)) (void)tcsetattr(STDIN_FILENO, TCSANOW, &usual);
}

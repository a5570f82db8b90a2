#include "output/terminal_modes.hpp"

#include <atomic>

#include "system/windows/system.hpp"

namespace {

DWORD usual;                        // the modes at the start of the program
std::atomic<bool> changed = false;  // true: `usual` must be restored

void set(DWORD modes) noexcept {
  if (changed) ::SetConsoleMode(::GetStdHandle(STD_INPUT_HANDLE), modes);
}

}  // namespace

TerminalModes::TerminalModes() { changed = ::GetConsoleMode(::GetStdHandle(STD_INPUT_HANDLE), &usual) != 0; }

TerminalModes::~TerminalModes() { restore(); }

// The console shows typed text only while a line is read. Until then it keeps the text.
void TerminalModes::show_typing() noexcept { set(usual | ENABLE_LINE_INPUT | ENABLE_ECHO_INPUT | ENABLE_PROCESSED_INPUT); }

void TerminalModes::hide_typing() noexcept {}

void TerminalModes::leave() noexcept { restore(); }

void TerminalModes::restore() noexcept {
  if (changed.exchange(false)) ::SetConsoleMode(::GetStdHandle(STD_INPUT_HANDLE), usual);
}

#include "interrupt.hpp"

#include <atomic>

#include "system/windows/system.hpp"

namespace {

std::atomic<std::stop_source*> work = nullptr;  // of the one Interrupt that there is

// Windows runs this in a thread of its own. FALSE: the next handler's turn, the last of which ends the program.
BOOL WINAPI stop_on_control(DWORD event) {
  if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) return FALSE;
  std::stop_source* const source = work;
  return source != nullptr && source->request_stop() ? TRUE : FALSE;
}

}  // namespace

Interrupt::Interrupt() {
  work = &source_;
  ::SetConsoleCtrlHandler(&stop_on_control, TRUE);
}

Interrupt::~Interrupt() {
  ::SetConsoleCtrlHandler(&stop_on_control, FALSE);  // waits for a handler that runs
  work = nullptr;
}

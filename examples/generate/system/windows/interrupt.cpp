#include "interrupt.hpp"

#include <atomic>

#include "system/windows/system.hpp"

namespace {

std::atomic<std::stop_source*> work = nullptr;  // the stop source of the only Interrupt; nullptr: there is none

// Windows runs this function in a new thread for each Ctrl-C. TRUE: the event is handled. FALSE: Windows calls the next handler; the last
// handler ends the program.
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
  ::SetConsoleCtrlHandler(&stop_on_control, FALSE);  // waits until a handler that runs has ended
  work = nullptr;
}

#include "system/end_signals.hpp"

#include <limits>

#include "failure.hpp"
#include "system/windows/system.hpp"

namespace server {
namespace {

HANDLE arrived = nullptr;  // counts the signals that no wait() has taken yet

// Windows runs this function in a thread of its own for each signal.
BOOL WINAPI count_signal(DWORD event) {
  ::ReleaseSemaphore(arrived, 1, nullptr);
  // When a console, session or system closes, Windows ends the program as soon as this function returns. So it does not return, and main()
  // has the seconds that Windows allows.
  if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) ::Sleep(INFINITE);
  return TRUE;
}

}  // namespace

EndSignals::EndSignals() {
  arrived = ::CreateSemaphoreW(nullptr, 0, std::numeric_limits<LONG>::max(), nullptr);
  if (arrived == nullptr)
    throw Failure(tessera::ErrorCode::io,
                  "Windows has no semaphore for Ctrl-C; end other programs and start the server again");
  ::SetConsoleCtrlHandler(nullptr, FALSE);  // Ctrl-C has an effect even if the parent process ignores it
  ::SetConsoleCtrlHandler(&count_signal, TRUE);
}

void EndSignals::wait() const noexcept { ::WaitForSingleObject(arrived, INFINITE); }

}  // namespace server

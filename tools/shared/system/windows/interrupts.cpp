#include "interrupts.hpp"

#include <atomic>
#include <system_error>

#include "system/windows/system.hpp"

namespace {

std::atomic<Interrupts*> only = nullptr;

BOOL WINAPI tell_of_control(DWORD event) {
  if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) return FALSE;
  Interrupts* const interrupts = only;
  if (interrupts == nullptr) return FALSE;
  interrupts->arrived();
  return TRUE;
}

HANDLE handle_of(std::intptr_t event) noexcept { return reinterpret_cast<HANDLE>(event); }

}  // namespace

Interrupts::Interrupts(IdleInterrupt idle, void (*before_end)() noexcept) : idle_(idle), before_end_(before_end) {
  const HANDLE event = ::CreateEventW(nullptr, TRUE, FALSE, nullptr);
  if (event == nullptr) throw std::system_error(static_cast<int>(::GetLastError()), std::system_category(), "cannot make an event for Ctrl-C");
  ends_[0] = reinterpret_cast<std::intptr_t>(event);
  only = this;
  ::SetConsoleCtrlHandler(&tell_of_control, TRUE);
}

Interrupts::~Interrupts() {
  ::SetConsoleCtrlHandler(&tell_of_control, FALSE);
  only = nullptr;
  ::CloseHandle(handle_of(ends_[0]));
}

void Interrupts::arrived() {
  const std::lock_guard lock(mutex_);
  if (!work_ && idle_ == IdleInterrupt::wakes) {
    ::SetEvent(handle_of(ends_[0]));
  } else if (!work_ || !work_->request_stop()) {
    if (before_end_ != nullptr) before_end_();
    ::ExitProcess(130);
  }
}

bool Interrupts::clear() noexcept {
  const bool had = ::WaitForSingleObject(handle_of(ends_[0]), 0) == WAIT_OBJECT_0;
  ::ResetEvent(handle_of(ends_[0]));
  return had;
}

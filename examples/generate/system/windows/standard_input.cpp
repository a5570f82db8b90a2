#include "system/standard_input.hpp"

#include <array>
#include <string>

#include <fmt/format.h>

#include "failure.hpp"
#include "system/windows/system.hpp"

namespace {

[[noreturn]] void fail() {
  throw Failure(tessera::ErrorCode::io, fmt::format("standard input: cannot read: error {} of Windows", ::GetLastError()));
}

HANDLE event_of(Interrupts& interrupts) noexcept { return reinterpret_cast<HANDLE>(interrupts.waitable()); }

// Reads a line with the console's own editor, as UTF-8. Ctrl-C ends the call without a character. Ctrl-Z at the beginning of a line ends
// the input.
Input read_console(Interrupts& interrupts, HANDLE input, std::string& text) {
  std::array<wchar_t, 1024> typed;
  std::wstring line;
  DWORD units = 0;
  ::SetLastError(ERROR_SUCCESS);
  if (!::ReadConsoleW(input, typed.data(), static_cast<DWORD>(typed.size()), &units, nullptr)) fail();
  if (units == 0) {
    // The handler of Ctrl-C runs in another thread, and may not have set the event yet.
    if (::GetLastError() != ERROR_OPERATION_ABORTED && ::WaitForSingleObject(event_of(interrupts), 50) != WAIT_OBJECT_0) return Input::end;
    (void)::WaitForSingleObject(event_of(interrupts), 1000);
    (void)interrupts.clear();
    return Input::interrupted;
  }
  line.assign(typed.data(), units);
  // Reads the second half of a pair of surrogates, so that the pair is not cut.
  if (line.back() >= 0xd800 && line.back() < 0xdc00 && ::ReadConsoleW(input, typed.data(), 1, &units, nullptr)) line.append(typed.data(), units);
  if (line.front() == L'\x1a') return Input::end;
  std::erase(line, L'\r');
  text = tessera::tool::utf8_of(line);
  return Input::byte;
}

// Reads bytes of a pipe. A pipe has no event to wait for, so this function looks every 10 ms.
Input read_pipe(Interrupts& interrupts, HANDLE input, std::span<char> bytes, std::size_t& n) {
  for (;;) {
    ::SetLastError(ERROR_SUCCESS);
    DWORD there = 0;
    // Only Windows' own pipes can be asked whether they have bytes. Any other input is read at once, and Ctrl-C waits until the read ends.
    const bool can_tell = ::GetFileType(input) == FILE_TYPE_PIPE && ::PeekNamedPipe(input, nullptr, 0, nullptr, &there, nullptr);
    if (!can_tell && ::GetLastError() == ERROR_BROKEN_PIPE) return Input::end;
    if (can_tell) {
      if (::WaitForSingleObject(event_of(interrupts), there == 0 ? 10 : 0) == WAIT_OBJECT_0) {
        (void)interrupts.clear();
        return Input::interrupted;
      }
      if (there == 0) continue;
    }
    DWORD got = 0;
    if (!::ReadFile(input, bytes.data(), static_cast<DWORD>(bytes.size()), &got, nullptr)) {
      if (::GetLastError() == ERROR_BROKEN_PIPE || ::GetLastError() == ERROR_HANDLE_EOF) return Input::end;
      fail();
    }
    n = got;
    return got == 0 ? Input::end : Input::byte;
  }
}

}  // namespace

Input read_input(Interrupts& interrupts, std::span<char> bytes, std::size_t& n) {
  const HANDLE input = ::GetStdHandle(STD_INPUT_HANDLE);
  DWORD mode = 0;
  if (!::GetConsoleMode(input, &mode)) return read_pipe(interrupts, input, bytes, n);
  static std::string rest;  // the rest of a line that was longer than `bytes`. Static, because there is only one standard input
  while (rest.empty()) {
    if (const Input what = read_console(interrupts, input, rest); what != Input::byte) return what;
  }
  n = rest.copy(bytes.data(), bytes.size());
  rest.erase(0, n);
  return Input::byte;
}

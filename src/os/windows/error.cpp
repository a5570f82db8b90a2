#include "os/error.hpp"

#include "core/error.hpp"
#include "os/windows/windows.hpp"

namespace tessera::os {

std::string words_of(int number) {
  wchar_t text[512];
  constexpr DWORD kHow = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS | FORMAT_MESSAGE_MAX_WIDTH_MASK;
  DWORD units = ::FormatMessageW(kHow, nullptr, static_cast<DWORD>(number), 0, text, static_cast<DWORD>(std::size(text)), nullptr);
  while (units > 0 && (text[units - 1] == L' ' || text[units - 1] == L'.')) --units;  // "... ." in the middle of our sentence
  return units > 0 ? utf8_of({text, units}) : fmt::format("error {} of Windows", number);
}

Error system_error_at(std::string place, const char* doing, int number) {
  ErrorCode code = ErrorCode::io;
  switch (number) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_NET_NAME: code = ErrorCode::not_found; break;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_NO_SYSTEM_RESOURCES:
    case ERROR_COMMITMENT_LIMIT: code = ErrorCode::out_of_memory; break;
    default: break;
  }
  return detail::error_at(code, std::move(place), "cannot {}: {}", doing, words_of(number));
}

bool says_exists(int number) noexcept { return number == ERROR_FILE_EXISTS || number == ERROR_ALREADY_EXISTS; }

int device_error_number() noexcept { return ERROR_IO_DEVICE; }

}  // namespace tessera::os

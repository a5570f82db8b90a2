#include "system/program.hpp"

#include <fcntl.h>
#include <io.h>

#include "system/windows/system.hpp"

#include <shellapi.h>

#include <array>

namespace tessera::tool {
namespace {

HANDLE handle_of(Standard file) noexcept {
  return ::GetStdHandle(file == Standard::input ? STD_INPUT_HANDLE : file == Standard::output ? STD_OUTPUT_HANDLE : STD_ERROR_HANDLE);
}

// The settings of the console before this program. They are restored, because the console outlives the program.
struct ConsoleSettings {
  UINT output = 0;
  std::array<DWORD, 2> modes{};  // of standard output and standard error; 0: not changed
};
ConsoleSettings before;

void set_console() noexcept {
  before.output = ::GetConsoleOutputCP();  // 0: there is no console
  if (before.output != 0) ::SetConsoleOutputCP(CP_UTF8);
  constexpr std::array kFiles{Standard::output, Standard::error};
  for (std::size_t i = 0; i < kFiles.size(); ++i) {
    DWORD mode = 0;
    if (!::GetConsoleMode(handle_of(kFiles[i]), &mode)) continue;
    if (::SetConsoleMode(handle_of(kFiles[i]), mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING)) before.modes[i] = mode;
  }
}

}  // namespace

std::string utf8_of(std::wstring_view text) {
  const int bytes = ::WideCharToMultiByte(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), nullptr, 0, nullptr, nullptr);
  std::string result(static_cast<std::size_t>(bytes), '\0');
  ::WideCharToMultiByte(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), result.data(), bytes, nullptr, nullptr);
  return result;
}

std::wstring utf16_of(std::string_view text) {
  const int units = ::MultiByteToWideChar(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), nullptr, 0);
  std::wstring result(static_cast<std::size_t>(units), L'\0');
  ::MultiByteToWideChar(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), result.data(), units);
  return result;
}

Program::Program(int argc, char** argv) {
  for (std::FILE* file : {stdin, stdout, stderr}) (void)_setmode(_fileno(file), _O_BINARY);
  set_console();
  // argv is in the system's code page, which lacks most characters.
  int count = 0;
  if (wchar_t** const wide = ::CommandLineToArgvW(::GetCommandLineW(), &count); wide != nullptr) {
    for (int i = 0; i < count; ++i) texts_.push_back(utf8_of(wide[i]));
    ::LocalFree(wide);
  } else {
    texts_.assign(argv, argv + argc);
  }
  for (std::string& text : texts_) values_.push_back(text.data());
  values_.push_back(nullptr);
}

Program::~Program() {
  std::fflush(nullptr);
  if (before.output != 0) ::SetConsoleOutputCP(before.output);
  if (before.modes[0] != 0) ::SetConsoleMode(handle_of(Standard::output), before.modes[0]);
  if (before.modes[1] != 0) ::SetConsoleMode(handle_of(Standard::error), before.modes[1]);
}

bool is_terminal(Standard file) noexcept {
  DWORD mode = 0;  // needed because _isatty() says that NUL is a terminal
  return ::GetConsoleMode(handle_of(file), &mode) != 0;
}

std::FILE* open_file(const std::string& path, const char* mode) noexcept {
  try {
    return _wfopen(utf16_of(path).c_str(), utf16_of(mode).c_str());
  } catch (...) {
    return nullptr;  // no memory, as errno says
  }
}

std::tm local_time() noexcept {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_s(&parts, &now);
  return parts;
}

}  // namespace tessera::tool

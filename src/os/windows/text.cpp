#include <limits>

#include "os/file.hpp"
#include "os/windows/windows.hpp"

namespace tessera::os {
namespace {

// Returns a length as an int, for functions of Windows; 0 if it does not fit, so that such a text counts as empty. (No path and no message
// is that long.)
int length_of(std::size_t units) noexcept {
  return units > static_cast<std::size_t>(std::numeric_limits<int>::max()) ? 0 : static_cast<int>(units);
}

}  // namespace

std::string utf8_of(std::wstring_view text) {
  const int units = length_of(text.size());
  if (units == 0) return {};
  const int bytes = ::WideCharToMultiByte(CP_UTF8, 0, text.data(), units, nullptr, 0, nullptr, nullptr);
  std::string result(static_cast<std::size_t>(bytes), '\0');
  ::WideCharToMultiByte(CP_UTF8, 0, text.data(), units, result.data(), bytes, nullptr, nullptr);
  return result;
}

std::wstring utf16_of(std::string_view text) {
  const int bytes = length_of(text.size());
  if (bytes == 0) return {};
  const int units = ::MultiByteToWideChar(CP_UTF8, 0, text.data(), bytes, nullptr, 0);
  std::wstring result(static_cast<std::size_t>(units), L'\0');
  ::MultiByteToWideChar(CP_UTF8, 0, text.data(), bytes, result.data(), units);
  return result;
}

std::string text_of(const std::filesystem::path& path) { return utf8_of(path.native()); }

std::filesystem::path path_of(std::string_view text) { return utf16_of(text); }

std::wstring system_path(const std::filesystem::path& path) {
  constexpr std::size_t kSure = 240;  // MAX_PATH is 260; a folder's is 12 less
  const std::wstring& text = path.native();
  if (text.size() < kSure || text.starts_with(L"\\\\?\\") || text.starts_with(L"\\\\.\\")) return text;
  // With the prefix "\\?\" Windows accepts a long path, but uses it exactly as it is written. So the path must be absolute, without "." and
  // "..", and with backslashes.
  std::wstring whole(text.size() + MAX_PATH, L'\0');
  for (;;) {
    const DWORD units = ::GetFullPathNameW(text.c_str(), static_cast<DWORD>(whole.size()), whole.data(), nullptr);
    if (units == 0) return text;
    const bool fits = units < whole.size();
    whole.resize(units);
    if (fits) break;
  }
  return whole.starts_with(L"\\\\") ? L"\\\\?\\UNC\\" + whole.substr(2) : L"\\\\?\\" + whole;
}

}  // namespace tessera::os

// Includes the headers of Windows without those of their macros that clash with other names. Also declares conversions of texts and paths.
#pragma once

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <filesystem>
#include <string>

namespace tessera::os {

// Returns a path in the form for functions of Windows. If it has about MAX_PATH characters or more, it is made absolute and gets the prefix
// "\\?\", without which Windows refuses long paths.
[[nodiscard]] std::wstring system_path(const std::filesystem::path& path);

// Converts a text of Windows (UTF-16) to UTF-8. Invalid UTF-16 becomes U+FFFD.
[[nodiscard]] std::string utf8_of(std::wstring_view text);
[[nodiscard]] std::wstring utf16_of(std::string_view text);

}  // namespace tessera::os

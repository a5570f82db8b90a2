// Includes the headers of Windows, without those of their macros that clash with other names, and declares conversions of texts and paths.
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

// Returns the path for a function of Windows. A path of about MAX_PATH characters or more becomes absolute and gets the prefix "\\?\",
// which allows long paths.
[[nodiscard]] std::wstring system_path(const std::filesystem::path& path);

// Returns a text of Windows in UTF-8. Invalid UTF-16 becomes U+FFFD.
[[nodiscard]] std::string utf8_of(std::wstring_view text);
[[nodiscard]] std::wstring utf16_of(std::string_view text);

}  // namespace tessera::os

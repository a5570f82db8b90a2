// The headers of Windows, without their macros of other words, and paths as its functions take them.
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

// Returns the path for a function of Windows: longer paths than MAX_PATH whole and with the prefix that lets them be long.
[[nodiscard]] std::wstring system_path(const std::filesystem::path& path);

// Returns a text of Windows in UTF-8; what is no UTF-16 becomes U+FFFD.
[[nodiscard]] std::string utf8_of(std::wstring_view text);
[[nodiscard]] std::wstring utf16_of(std::string_view text);

}  // namespace tessera::os

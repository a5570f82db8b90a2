// Includes the headers of Windows, and removes their macros that are common words.
#pragma once

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <string>
#include <string_view>

namespace tessera::tool {

[[nodiscard]] std::string utf8_of(std::wstring_view text);
[[nodiscard]] std::wstring utf16_of(std::string_view text);

}  // namespace tessera::tool

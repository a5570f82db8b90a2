// Texts of strangers (a file's names, a caller's arguments) as they may stand in an error message or a log line.
#pragma once

#include <string>
#include <string_view>

namespace tessera::detail {

// Puts a '?' in the place of each control character, each line or paragraph separator, each character that turns the
// direction of writing, and each maximal run of bytes that is not UTF-8. Works in place and allocates nothing.
void make_printable(std::string& text) noexcept;

// The same for a copy of bounded length: of a text longer than `limit` bytes, the whole characters that fit, and "...".
// Errors do this by themselves but for the length: use it where a text may be long.
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = 80);

}  // namespace tessera::detail

// Makes texts from outside (names in a file, arguments of a caller) safe to be put into an error message or a log line.
#pragma once

#include <string>
#include <string_view>

namespace tessera::detail {

// Replaces by a '?': each control character, each line or paragraph separator, each character that changes the direction of writing, and
// each longest run of bytes that are not UTF-8. Works in place and allocates nothing.
void make_printable(std::string& text) noexcept;

// Returns a printable copy of a text, cut to a length: if the text has more than `limit` bytes, the whole characters that fit, and "...".
// Use it for error messages with texts that may be long: an Error makes its texts printable itself, but does not cut them.
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = 80);

}  // namespace tessera::detail

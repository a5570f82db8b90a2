// Makes foreign texts (a file's names, a caller's arguments) safe to put into an error message or a log line.
#pragma once

#include <string>
#include <string_view>

namespace tessera::detail {

// Replaces each control character, each line or paragraph separator, each character that turns the direction of writing, and each
// maximal run of bytes that is not UTF-8 by a '?'. Works in place and allocates nothing.
void make_printable(std::string& text) noexcept;

// Returns a printable copy of bounded length: if the text is longer than `limit` bytes, the whole characters that fit, and "...". Use it
// for errors where a text may be long: an Error makes its texts printable itself, but does not cut them.
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = 80);

}  // namespace tessera::detail

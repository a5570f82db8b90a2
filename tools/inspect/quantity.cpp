#include "quantity.hpp"

#include <charconv>

#include <fmt/format.h>

#include "command_line.hpp"
#include "show.hpp"

namespace tessera::inspect {
namespace {

Error bad(std::string_view text, std::string_view expected) {
  return {ErrorCode::invalid_argument, fmt::format("'{}' is not {}", shown(text), expected)};
}

}  // namespace

Result<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return bad(text, "a whole number of at most 64 bits");
  return value;
}

Result<std::uint64_t> parse_tokens(std::string_view text) {
  if (const auto tokens = tool::parse_tokens(text)) return *tokens;
  return bad(text, "a number of tokens, such as 8192 or 8k");
}

}  // namespace tessera::inspect

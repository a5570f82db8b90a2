// Base64 (RFC 4648), in which a tokenizer.json has its charsmap.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tessera::detail {

// Returns the decoded bytes; nullopt if the text is not base64.
[[nodiscard]] std::optional<std::string> base64_bytes(std::string_view text);

// Returns the bytes in base64.
[[nodiscard]] std::string base64_text(std::string_view bytes);

}  // namespace tessera::detail

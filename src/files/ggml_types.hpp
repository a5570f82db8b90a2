// Names of ggml's weight types by their numbers. DType uses the same numbers.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera::detail {

// Returns the name of a ggml type, even if tessera cannot read that type; "unknown" for a number that ggml does not define.
[[nodiscard]] std::string_view ggml_type_name(std::uint32_t id) noexcept;

}  // namespace tessera::detail

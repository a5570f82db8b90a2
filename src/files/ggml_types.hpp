// Names of weight types, by ggml's numbers, which DType has too.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera::detail {

// Returns the name of a ggml type, also of types that tessera does not read; "unknown" for other ids.
[[nodiscard]] std::string_view ggml_type_name(std::uint32_t id) noexcept;

}  // namespace tessera::detail

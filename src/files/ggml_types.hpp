// The names of types of weights, by the numbers that DType has from ggml.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera::detail {

// The name of a ggml type, also of those that tessera does not read; "unknown" for other ids.
[[nodiscard]] std::string_view ggml_type_name(std::uint32_t id) noexcept;

}  // namespace tessera::detail

// The library's version, as built: "0.1.0".
#pragma once

#include <string_view>

namespace tessera {

[[nodiscard]] std::string_view version() noexcept;

}  // namespace tessera

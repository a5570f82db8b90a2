// Prints numbers as Python does, which chat templates expect of JSON texts.
#pragma once

#include <string>

namespace tessera::detail {

[[nodiscard]] std::string python_float(double value);  // "1.0", "1e-05", "nan"

}  // namespace tessera::detail

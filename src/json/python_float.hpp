// Prints numbers as Python does. Chat templates were written for Python and expect JSON texts with numbers in this form.
#pragma once

#include <string>

namespace tessera::detail {

[[nodiscard]] std::string python_float(double value);  // "1.0", "1e-05", "nan"

}  // namespace tessera::detail

// tessera prints nothing. A host that wants to hear of things gives a callback.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace tessera {

enum class LogLevel : std::int32_t { debug = 0, info = 1, warning = 2, error = 3, off = 4 };

// May be called from any thread that calls into tessera, never from two at once for one engine. `message` is one line.
using LogCallback = std::function<void(LogLevel level, std::string_view message)>;

}  // namespace tessera

// Messages for a host that wants to log them. tessera itself prints nothing.
//
//   tessera::EngineOptions options;
//   options.log = [](tessera::LogLevel, std::string_view message) { std::cerr << message << '\n'; };
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace tessera {

enum class LogLevel : std::int32_t { debug = 0, info = 1, warning = 2, error = 3, off = 4 };

// Receives a message, which is one line. The library calls it on a thread that calls into tessera; for each engine, on one thread at a time.
using LogCallback = std::function<void(LogLevel level, std::string_view message)>;

}  // namespace tessera

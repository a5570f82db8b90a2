// The options of engines and sessions, as JSON.
#pragma once

#include <string>

#include <tessera/engine.hpp>
#include <tessera/session.hpp>

#include "options/json_options.hpp"

namespace tessera::c {

void read_engine_options(const char* json, std::size_t size, EngineOptions& to);
[[nodiscard]] SessionOptions read_session_options(const char* json, std::size_t size);
void read_session_options(const Value& value, SessionOptions& to);
[[nodiscard]] KvOptions read_kv_options(const char* json, std::size_t size);

}  // namespace tessera::c

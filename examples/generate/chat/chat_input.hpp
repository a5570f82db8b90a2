// Input of --render and --chat: JSON files, and the clock.
#pragma once

#include <string>

#include <tessera/chat/chat_template.hpp>
#include <tessera/json/json.hpp>

// Reads a JSON file; "-" is standard input. Errors name the file.
[[nodiscard]] tessera::Json read_json(const std::string& path);

// Returns the time of this machine's clock, for templates that print today's date.
[[nodiscard]] tessera::LocalTime local_time();

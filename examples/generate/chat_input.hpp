// What --render and --chat read: JSON files, and the clock.
#pragma once

#include <string>

#include <tessera/chat/chat_template.hpp>
#include <tessera/json/json.hpp>

// "-" is standard input. Errors name the file.
[[nodiscard]] tessera::Json read_json(const std::string& path);

// As this machine's clock shows it, for templates that print today's date.
[[nodiscard]] tessera::LocalTime local_time();

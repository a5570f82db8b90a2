#include "chat/chat_input.hpp"

#include <ctime>

#include <fmt/format.h>

#include "failure.hpp"
#include "prompt.hpp"
#include "system/program.hpp"

tessera::Json read_json(const std::string& path) {
  auto json = tessera::Json::parse(read_file(path));
  if (!json) throw Failure(json.error().code(), fmt::format("{}: {}", path, json.error().text()));
  return *std::move(json);
}

tessera::LocalTime local_time() {
  const std::tm parts = tessera::tool::local_time();
  return {parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec};
}

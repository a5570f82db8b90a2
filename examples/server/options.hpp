// The command line of tessera-server.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <tessera/engine.hpp>
#include <tessera/scheduler/scheduler.hpp>

#include "http_server.hpp"
#include "server.hpp"

namespace server {

struct Options {
  std::optional<std::string> model{};  // a file; none: the model inside the program
  std::string model_id{};              // the name for clients; empty: the file's name
  std::optional<std::string> chat_template{};
  tessera::EngineOptions engine{};
  tessera::SchedulerOptions scheduler{};
  HttpOptions http{};
  ServerOptions server{};
  std::size_t workers = 2;
  std::chrono::seconds drain_time{30};
};

// Reads the command line. nullopt: help or the version was asked for and has been printed. Throws UsageError.
[[nodiscard]] std::optional<Options> parse_options(int argc, char** argv);

}  // namespace server

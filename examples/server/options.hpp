// The command line of tessera-server.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/engine.hpp>
#include <tessera/scheduler/scheduler.hpp>

#include "machine_options.hpp"
#include "http_server.hpp"
#include "models/model_list.hpp"
#include "server.hpp"

namespace server {

struct Options {
  NamedModels names{};                  // no model: the model inside the program
  std::vector<std::string> adapters{};  // --lora: NAME=PATH or MODEL/NAME=PATH
  bool changes_adapters = false;       // requests may load and unload adapters
  std::uint64_t memory = 0;            // bytes of all loaded models together; 0: the server chooses
  std::optional<double> keep_alive{};  // seconds; nullopt: a model stays until its memory is needed
  std::chrono::seconds load_time{300};
  bool strict_model = false;           // another model's name is an error
  std::optional<std::string> chat_template{};
  tessera::EngineOptions engine{};
  tessera::tool::Ranks ranks{};  // the options of ranks, which are copied to `engine` when all options are read
  tessera::SchedulerOptions scheduler{};
  HttpOptions http{};
  ServerOptions server{};
  std::string kv_events{};             // the endpoint at which changes of the prefix indices are published; empty: none
  std::size_t workers = 2;
  std::chrono::seconds drain_time{30};

  // Returns whether the server has one model, which is loaded at the start and stays.
  [[nodiscard]] bool has_one_model() const noexcept { return names.models.size() <= 1 && !names.folder && !keep_alive; }
};

// Reads the command line. Returns nullopt if help or the version was asked for, and has been printed. Throws UsageError.
[[nodiscard]] std::optional<Options> parse_options(int argc, char** argv);

}  // namespace server

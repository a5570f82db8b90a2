// Options of the command line that programs behind HTTP share, and helpers for further options.
#pragma once

#include <charconv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "failure.hpp"
#include "http_server.hpp"

namespace server {

// Parses a number. Throws UsageError, which names the option and the allowed range.
template <class T>
[[nodiscard]] T number_from(const std::string& option, const std::string& text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most)) {
    throw UsageError(fmt::format("{}: \"{}\" is not a number from {} to {}", option, text, least, most));
  }
  return value;
}

// Adds an option with a number. `names`: for example "-p,--port"; errors show the last name.
template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& names, T& target, T least, T most, const std::string& description) {
  const std::string name = names.substr(names.rfind(',') + 1);
  return app.add_option_function<std::string>(names, [=, &target](const std::string& text) { target = number_from(name, text, least, most); }, description)->type_name("N");
}

// Adds an option of whole seconds, from 0 to `most`.
template <class Duration>
CLI::Option* add_seconds(CLI::App& app, const std::string& name, Duration& target, const std::string& description, unsigned most = 86400) {
  return app
      .add_option_function<std::string>(name, [=, &target](const std::string& text) { target = std::chrono::seconds(number_from<unsigned>(name, text, 0, most)); }, description)
      ->type_name("SECONDS");
}

// Parses a size: bytes, or a number with a unit. Throws UsageError.
[[nodiscard]] std::uint64_t bytes_from(const std::string& option, const std::string& text);

template <class T>
CLI::Option* add_bytes(CLI::App& app, const std::string& name, T& target, const std::string& description) {
  return app.add_option_function<std::string>(name, [name, &target](const std::string& text) { target = static_cast<T>(bytes_from(name, text)); }, description)->type_name("SIZE");
}

// Adds --host and --port. `port`: the default.
void add_address(CLI::App& app, HttpOptions& http, std::uint16_t port);
// Adds --tls-cert and --tls-key.
void add_tls(CLI::App& app, HttpOptions& http);
// Throws UsageError if one of --tls-cert and --tls-key is given without the other.
void check_tls(const HttpOptions& http);

// Calls `add`, and puts the options that it adds under a heading of the help.
void add_group(CLI::App& app, const char* heading, const std::function<void()>& add);

// Parses the command line. Returns false if help or the version was asked for, and has been printed. Throws UsageError; Failure if the help
// could not be printed.
[[nodiscard]] bool parse_command_line(CLI::App& app, const char* program, const char* footer, int argc, char** argv, const std::function<void()>& add_options);

}  // namespace server

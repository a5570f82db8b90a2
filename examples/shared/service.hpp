// The frame of a program behind HTTP: how it reports errors, how it shows its address, how signals end it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "http_server.hpp"
#include "system/end_signals.hpp"

namespace server {

// Calls `run` with the arguments, and returns its status. Prints an error on standard error; the status is then 2 for a UsageError, 130 for
// an interruption, 1 for other errors.
[[nodiscard]] int run_service(const char* program, int argc, char** argv, const std::function<int(int argc, char** argv)>& run);

// Returns whether only programs on this machine reach this address.
[[nodiscard]] bool is_local(const std::string& host);
// Returns the address that a server prints when it starts: http://127.0.0.1:8080/
[[nodiscard]] std::string url_of(const HttpOptions& http, std::uint16_t port);
// Warns on standard error if other machines reach the server and the server asks for no key.
void warn_of_open_address(const HttpOptions& http, bool has_keys);

// Makes the next signal end the program at once. `signals` must live as long as the program.
void end_at_next_signal(const EndSignals& signals);

}  // namespace server

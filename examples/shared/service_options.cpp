#include "service_options.hpp"

#include "command_line.hpp"
#include "machine_options.hpp"
#include "sizes.hpp"
#include "system/program.hpp"

namespace server {

std::uint64_t bytes_from(const std::string& option, const std::string& text) {
  const auto value = tessera::tool::parse_bytes(text);
  if (!value) throw UsageError(fmt::format("{}: {}", option, value.error().text()));
  return *value;
}

void add_address(CLI::App& app, HttpOptions& http, std::uint16_t port) {
  http.port = port;
  app.add_option("--host", http.host, "The address to listen at; 0.0.0.0: all addresses of this machine\nDefault: 127.0.0.1, for programs on this machine only")->type_name("ADDRESS");
  add_number<std::uint16_t>(app, "-p,--port", http.port, 0, 65535, fmt::format("The port to listen at; 0: one that is free. Default: {}", port));
}

void add_tls(CLI::App& app, HttpOptions& http) {
  app.add_option("--tls-cert", http.tls_certificate, "Serve HTTPS with this certificate: a PEM file with the\ncertificate and its chain. Default: plain HTTP")->type_name("FILE");
  app.add_option("--tls-key", http.tls_key, "The private key of --tls-cert, a PEM file")->type_name("FILE");
}

void check_tls(const HttpOptions& http) {
  if (http.tls_certificate.empty() != http.tls_key.empty()) throw UsageError("--tls-cert and --tls-key belong together: give both, or none for plain HTTP");
}

void add_group(CLI::App& app, const char* heading, const std::function<void()>& add) {
  app.option_defaults()->group(heading);
  add();
}

bool parse_command_line(CLI::App& app, const char* program, const char* footer, int argc, char** argv, const std::function<void()>& add_options) {
  tessera::tool::add_version(app, program);
  app.footer(footer);
  app.get_formatter()->column_width(36);
  add_options();
  try {
    tessera::tool::parse(app, argc, argv);
  } catch (const CLI::Success& asked) {
    app.exit(asked);
    if (!tessera::tool::output_arrived()) throw Failure(tessera::ErrorCode::io, tessera::tool::kLostOutput);
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  return true;
}

}  // namespace server

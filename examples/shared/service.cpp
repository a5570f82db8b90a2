#include "service.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "failure.hpp"
#include "system/program.hpp"

namespace server {

int run_service(const char* program, int argc, char** argv, const std::function<int(int, char**)>& run) {
  tessera::tool::Program standard(argc, argv);
  const auto complain = [program](std::string_view message, int status) {
    fmt::print(stderr, "{}: {}\n", program, message);
    return status;
  };
  try {
    return run(standard.argc(), standard.argv());
  } catch (const UsageError& error) {
    return complain(fmt::format("{} (see {} --help)", error.what(), program), 2);
  } catch (const Failure& failure) {
    return complain(failure.what(), failure.code == tessera::ErrorCode::cancelled ? 130 : 1);
  } catch (const std::exception& error) {
    return complain(error.what(), 1);
  }
}

bool is_local(const std::string& host) { return host == "127.0.0.1" || host == "::1" || host == "localhost"; }

std::string url_of(const HttpOptions& http, std::uint16_t port) {
  const bool is_v6 = http.host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}/", http.tls_certificate.empty() ? "http" : "https", is_v6 ? "[" : "", http.host, is_v6 ? "]" : "", port);
}

void warn_of_open_address(const HttpOptions& http, bool has_keys) {
  if (is_local(http.host) || has_keys) return;
  fmt::print(stderr, "  everybody who reaches this address may send requests: --api-key-file limits that to those with a key\n");
}

void end_at_next_signal(const EndSignals& signals) {
  std::thread([&signals] {
    signals.wait();
    fmt::print(stderr, "ended at once\n");
    std::_Exit(130);
  }).detach();
}

}  // namespace server

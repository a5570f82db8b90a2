#include "measure/worker.hpp"

#include <csignal>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/version.hpp>

#include "failure.hpp"
#include "interrupt.hpp"
#include "show/report.hpp"

namespace tessera::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t kMostSequences = 4096;

void answer(const Json& json) { print(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"); }

std::optional<Test> test_named(const std::string& name) {
  for (const Test test : {Test::prefill, Test::decode, Test::batch, Test::depth}) {
    if (name == to_string(test)) return test;
  }
  return std::nullopt;
}

std::uint32_t count_of(const Json& json, const char* key, std::uint32_t least, std::uint32_t most) {
  const Json& value = json[key];
  if (value.is_number_integer() && value >= least && value <= most) return value.get<std::uint32_t>();
  throw Failure(fmt::format("\"{}\" is not a whole number from {} to {}", key, least, most));
}

// Lets Ctrl-C also interrupt the wait for the next request: read() then fails instead of going on.
void interrupt_reads() {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action = {};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler != request_stop) continue;
    action.sa_flags &= ~SA_RESTART;
    (void)sigaction(signal, &action, nullptr);
  }
}

}  // namespace

Request parse_request(const std::string& line, const Options& options) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("test") || !json["test"].is_string()) {
    throw Failure("a request is a JSON object with \"test\", \"n\" and \"steps\"");
  }
  const auto test = test_named(json["test"].get<std::string>());
  if (!test) throw Failure("\"test\" is not one of prefill, decode, batch, depth");

  const std::uint32_t context = options.context();
  Request request{*test, 1, options.steps};
  if (*test != Test::prefill && json.contains("steps")) request.steps = count_of(json, "steps", 1, context);
  if (*test != Test::decode) {
    if (!json.contains("n")) throw Failure("\"n\" is missing");
    request.count = count_of(json, "n", 1, *test == Test::batch ? kMostSequences : context);
  }

  Options alone = options;  // the options for only this test, to find the context that it needs
  alone.prefill = alone.batches = alone.depths = {};
  alone.decode = *test == Test::decode;
  alone.steps = request.steps;
  if (*test == Test::prefill) alone.prefill = {request.count};
  if (*test == Test::batch) alone.batches = {request.count};
  if (*test == Test::depth) alone.depths = {request.count};
  if (alone.context() > context) {
    throw Failure(fmt::format("needs a context of {} tokens; the tests of the command line need {}", alone.context(), context));
  }
  return request;
}

void serve(std::istream& in, const Subject& setting, const Options& options, Tests& tests) {
  interrupt_reads();
  answer({{"version", fmt::format("tessera {}", version())}, {"features", {setting.isa}}});
  for (std::string line; std::getline(in, line);) {
    try {
      tests.run(parse_request(line, options));
    } catch (const Failure& failure) {
      answer({{"error", failure.what()}});
    }
    throw_if_interrupted();
  }
  throw_if_interrupted();
}

}  // namespace tessera::bench

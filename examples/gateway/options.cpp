#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command_line.hpp"
#include "failure.hpp"
#include "machine_options.hpp"
#include "sizes.hpp"
#include "system/program.hpp"

namespace gateway {

namespace {

constexpr const char* kFooter = R"(
A question's answer comes from the cache if a question of nearly the same meaning was answered before, for the same
tenant, model, earlier messages and sampling fields. Otherwise rules, the classifier or --default choose a model:
  small     the small model answers
  large     the large model answers
  adaptive  the small model answers; if it was uncertain, the large model answers instead
Headers of an answer say what happened: x-cache, x-tier, x-compressed. /metrics has all figures.

Examples:
  tessera-gateway --large http://127.0.0.1:8080 --embedder all-MiniLM-L6-v2
  tessera-gateway --small http://127.0.0.1:8081 --large http://10.0.0.2:8080 --large http://10.0.0.3:8080
  tessera-gateway --small http://127.0.0.1:8081 --large https://api.example.com --large-key-file key.txt \
      --embedder all-MiniLM-L6-v2 --classifier difficulty.json --rules rules.json --check 2 --check-log checks.jsonl

Never cached: requests with tools, with n above 1, with a temperature above --cache-temperature, with logprobs, with
images, or whose text --never matches; and answers with tool calls, with reasoning, or that broke off.
docs/howto/gateway.md says more. SIGTERM or Ctrl-C ends the gateway when the running answers are done; a second one
ends it at once.)";

template <class T>
T number_from(const std::string& option, const std::string& text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most)) {
    throw UsageError(fmt::format("{}: \"{}\" is not a number from {} to {}", option, text, least, most));
  }
  return value;
}

template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& name, T& target, T least, T most, const std::string& description) {
  const std::string shown = name.substr(name.rfind(',') + 1);
  return app.add_option_function<std::string>(name, [=, &target](const std::string& text) { target = number_from(shown, text, least, most); }, description)->type_name("N");
}

// A share in percent, kept as 0 to 1.
CLI::Option* add_percent(CLI::App& app, const std::string& name, double& target, const std::string& description) {
  return app
      .add_option_function<std::string>(
          name,
          [name, &target](const std::string& text) { target = number_from(name, text, 0.0, 100.0) / 100; },
          description)
      ->type_name("PERCENT");
}

template <class Duration>
void add_seconds(CLI::App& app, const std::string& name, Duration& target, const std::string& description) {
  app.add_option_function<std::string>(
         name,
         [name, &target](const std::string& text) { target = std::chrono::seconds(number_from<unsigned>(name, text, 0, 30 * 86400)); },
         description)
      ->type_name("SECONDS");
}

template <class T>
void add_bytes(CLI::App& app, const std::string& name, T& target, const std::string& description) {
  app.add_option_function<std::string>(
         name,
         [name, &target](const std::string& text) {
           const auto value = tessera::tool::parse_bytes(text);
           if (!value) throw UsageError(fmt::format("{}: {}", name, value.error().text()));
           target = *value;
         },
         description)
      ->type_name("SIZE");
}

void add_route(CLI::App& app, const std::string& name, Route& target, const std::string& description) {
  app.add_option_function<std::string>(
         name,
         [name, &target](const std::string& text) {
           const auto route = parse_route(text);
           if (!route) throw UsageError(fmt::format("{}: \"{}\" is none of small, large, adaptive", name, text));
           target = *route;
         },
         description)
      ->type_name("TIER");
}

Pattern pattern_from(const std::string& option, const std::string& expression) {
  try {
    return Pattern(expression);
  } catch (const Failure& failure) {
    throw UsageError(fmt::format("{}: {}", option, failure.what()));
  }
}

std::string first_line(const std::string& option, const std::string& path) {
  std::ifstream file(tessera::tool::path_of(path));
  std::string line;
  if (!std::getline(file, line)) throw Failure(tessera::ErrorCode::not_found, fmt::format("{}: cannot read a key from {}", option, path));
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  return line;
}

void add_tier(CLI::App& app, const std::string& name, TierOptions& tier, const std::string& which) {
  app.add_option_function<std::vector<std::string>>(
         "--" + name,
         [&tier](const std::vector<std::string>& all) {
           for (const std::string& url : all) tier.urls.push_back(parse_url(url));
         },
         fmt::format("A server of the {} model. Given again: a further server;\nrequests go to the servers in turn", which))
      ->type_name("URL")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option(fmt::format("--{}-model", name), tier.model, "The model's name for these servers. Default: the client's")->type_name("NAME");
  app.add_option_function<std::string>(
         fmt::format("--{}-key-file", name), [name, &tier](const std::string& path) { tier.key = first_line(fmt::format("--{}-key-file", name), path); },
         "A file whose first line is the key for these servers\nDefault: the client's key; none with --api-key-file")
      ->type_name("FILE");
}

void add_model_options(CLI::App& app, Options& o) {
  add_tier(app, "large", o.large, "large");
  add_tier(app, "small", o.small, "small");
  app.add_option("--embedder", o.embedder, "An encoder that runs in the gateway: for the cache, the\nclassifier and checks")->type_name("MODEL");
  add_number<std::size_t>(app, "--retries", o.retries, 0, 10, "How often a request is tried again whose answer has not\nbegun. Default: 1");
  add_seconds(app, "--connect-time", o.upstream.connect_time, "The longest time to reach a server (then 502). Default: 5");
  add_seconds(app, "--answer-time", o.upstream.answer_time, "The longest time until an answer begins (then 504)\nDefault: 300");
  add_seconds(app, "--silence", o.upstream.silence, "The longest time between two pieces of an answer\nDefault: 60");
  add_bytes(app, "--max-answer", o.upstream.answer_bytes, "The most bytes of an answer. Default: 64MiB");
}

void add_cache_options(CLI::App& app, Options& o) {
  app.add_flag_function("--no-cache", [&o](std::int64_t) { o.caches = false; }, "Answer every question anew");
  add_number<double>(app, "--threshold", o.cache.threshold, 0.0, 1.0, "The least similarity of a hit. Default: 0.95");
  add_seconds(app, "--ttl", o.cache.time_to_live, "How long an answer is kept. Default: 3600");
  add_bytes(app, "--cache-size", o.cache.bytes, "Memory of the cache. Default: 256MiB");
  add_number<double>(app, "--cache-temperature", o.cache_limits.temperature, 0.0, 2.0, "Requests with a higher temperature are not cached. Default: 1");
  add_number<std::size_t>(app, "--cache-turns", o.cache_limits.turns, 1, 1000, "Conversations with more user messages are not cached\nDefault: 4");
  app.add_option_function<std::vector<std::string>>(
         "--never",
         [&o](const std::vector<std::string>& all) {
           for (const std::string& each : all) o.never_cached.push_back(pattern_from("--never", each));
         },
         "A regular expression: matching questions are never cached.\nMay be given again")
      ->type_name("REGEX")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option_function<std::string>(
         "--never-file",
         [&o](const std::string& path) {
           std::ifstream file(tessera::tool::path_of(path));
           if (!file) throw Failure(tessera::ErrorCode::not_found, fmt::format("--never-file: cannot read {}", path));
           for (std::string line; std::getline(file, line);) {
             if (line.ends_with('\r')) line.pop_back();
             if (!line.empty() && line.front() != '#') o.never_cached.push_back(pattern_from("--never-file", line));
           }
         },
         "A file of such expressions, one a line")
      ->type_name("FILE");
}

void add_routing_options(CLI::App& app, Options& o) {
  app.add_option_function<std::string>("--rules", [&o](const std::string& path) { o.rules = read_rules(path); }, "Rules that choose a model, in JSON")->type_name("FILE");
  app.add_option_function<std::string>("--classifier", [&o](const std::string& path) { o.classifier = Classifier::read_file(path); },
                                       "Weights that say how difficult a question is")
      ->type_name("FILE");
  add_route(app, "--easy", o.easy, "The tier of questions that the classifier takes for easy\nDefault: adaptive");
  add_route(app, "--default", o.otherwise, "The tier of questions that nothing else decides about\nDefault: adaptive");
  add_number<double>(app, "--least-logprob", o.certainty.least_logprob, -100.0, 0.0,
                     "Mean log-probability of an adaptive answer's tokens, below\nwhich the large model answers. Default: -0.7");
  app.add_option_function<std::string>("--most-entropy", [&o](const std::string& text) { o.certainty.most_entropy = number_from<double>("--most-entropy", text, 0.0, 20.0); },
                                       "Mean entropy in nats, above which the large model answers\nDefault: not looked at")
      ->type_name("N");
}

void add_prompt_options(CLI::App& app, Options& o) {
  app.add_option("--compressor", o.scorer, "A small model that runs in the gateway and shortens prompts")->type_name("MODEL");
  add_percent(app, "--keep", o.compress.keep, "Share of a long text's tokens that is kept. Default: 80");
  add_bytes(app, "--compress-over", o.compress.least_bytes, "Shorter texts stay as they are. Default: 2000");
  add_bytes(app, "--compress-under", o.compress.most_bytes, "Longer texts stay as they are, because scoring takes time\nfor each token. Default: 64KiB");
  app.add_flag("--compress-system", o.compress.system_too, "Shorten system messages too");
  app.add_flag("--compress-code", o.compress.code_too, "Shorten code between ``` lines too");
}

void add_check_options(CLI::App& app, Options& o) {
  add_percent(app, "--check", o.quality.share, "Share of cached and small-tier answers that the large model\ncomputes again, in the background. Default: 0");
  add_number<double>(app, "--agreement", o.quality.agreement, 0.0, 1.0, "An answer less similar than this to the large model's is\nwrong, and is removed from the cache. Default: 0.7");
  app.add_option("--check-log", o.quality.log, "A JSON line for each check, with both answers")->type_name("FILE");
  add_number<std::uint64_t>(app, "--check-seed", o.quality.seed, 0, UINT64_MAX, "Seed of the draws that choose answers to check. Default: 1");
}

void add_network_options(CLI::App& app, Options& o) {
  app.add_option("--host", o.http.host, "The address to listen at; 0.0.0.0: every address\nDefault: 127.0.0.1, for this machine alone")->type_name("ADDRESS");
  add_number<std::uint16_t>(app, "-p,--port", o.http.port, 0, 65535, "The port to listen at; 0: a free one. Default: 8090");
  app.add_option("--tls-cert", o.http.tls_certificate, "Serve HTTPS with this certificate (chain, PEM)")->type_name("FILE");
  app.add_option("--tls-key", o.http.tls_key, "The private key of --tls-cert")->type_name("FILE");
  app.add_option_function<std::string>("--api-key-file", [&o](const std::string& path) { o.gateway.keys.read_file(path); },
                                       "Who may ask: a key a line, or NAME KEY. Names are tenants\nDefault: anybody; each key that clients send is a tenant")
      ->type_name("FILE");
  app.add_option_function<std::string>(
         "--tenant-header",
         [&o](std::string name) {
           for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
           o.gateway.tenant_header = std::move(name);
         },
         "A header that divides tenants further; a proxy in front\nmust set it")
      ->type_name("NAME");
  add_number<std::size_t>(app, "--at-once", o.gateway.at_once, 1, 1024, "Questions that are answered at once. Default: 32");
  add_number<std::size_t>(app, "--max-waiting", o.gateway.most_waiting, 0, 100'000, "Questions that may wait; more are refused (429)\nDefault: 256");
  add_number<std::size_t>(app, "--max-body", o.http.body_bytes, 1024, std::size_t{1} << 30, "The most bytes of a request (else 413). Default: 16777216");
  add_seconds(app, "--drain-time", o.drain_time, "Time for running answers when the gateway ends. Default: 30");
  tessera::tool::add_threads(app, o.engine.threads);
  app.add_flag_function("--no-log", [&o](std::int64_t) { o.gateway.logs_requests = false; }, "Print no line for each request on standard error");
}

struct HelpFormatter : CLI::Formatter {
  [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }
};

void check_together(const Options& o) {
  if (o.large.urls.empty()) throw UsageError("name the large model's server with --large URL");
  if (o.http.tls_certificate.empty() != o.http.tls_key.empty()) throw UsageError("--tls-cert and --tls-key belong together");
  if (o.embedder.empty() && o.classifier) throw UsageError("--classifier reads vectors of questions: name an encoder with --embedder");
  if (o.embedder.empty() && o.quality.share > 0) throw UsageError("--check compares vectors of answers: name an encoder with --embedder");
  if (o.small.urls.empty() && (!o.rules.empty() || o.classifier)) throw UsageError("--rules and --classifier choose between two models: name the other with --small URL");
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  options.http.port = 8090;
  CLI::App app("Stands in front of servers of OpenAI's API: reuses answers, sends easy questions to a small model, shortens prompts.", "tessera-gateway");
  tessera::tool::add_version(app, "tessera-gateway");
  app.footer(kFooter);
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(36);
  const auto group = [&](const char* name, auto&& add) {
    app.option_defaults()->group(name);
    add(app, options);
  };
  group("Models", add_model_options);
  group("Cache", add_cache_options);
  group("Routing", add_routing_options);
  group("Prompts", add_prompt_options);
  group("Checks", add_check_options);
  group("Network", add_network_options);
  try {
    tessera::tool::parse(app, argc, argv);
  } catch (const CLI::Success& asked) {
    app.exit(asked);
    if (!tessera::tool::output_arrived()) throw Failure(tessera::ErrorCode::io, tessera::tool::kLostOutput);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  check_together(options);
  return options;
}

}  // namespace gateway

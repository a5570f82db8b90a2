#include "options.hpp"

#include <algorithm>
#include <fstream>
#include <functional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "failure.hpp"
#include "machine_options.hpp"
#include "service_options.hpp"
#include "system/program.hpp"

namespace gateway {

using server::add_bytes;
using server::add_number;
using server::add_seconds;
using server::number_from;
using server::parse_url;

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

// Adds an option in percent. `target` gets the share, from 0 to 1.
CLI::Option* add_percent(CLI::App& app, const std::string& name, double& target, const std::string& description) {
  return app
      .add_option_function<std::string>(
          name,
          [name, &target](const std::string& text) { target = number_from(name, text, 0.0, 100.0) / 100; },
          description)
      ->type_name("PERCENT");
}

void add_route(CLI::App& app, const std::string& name, Route& target, const std::string& description) {
  app.add_option_function<std::string>(
         name,
         [name, &target](const std::string& text) {
           const auto route = parse_route(text);
           if (!route) throw UsageError(fmt::format("{}: \"{}\" is not small, large or adaptive", name, text));
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
  app.add_option("--embedder", o.embedder, "An encoder, such as all-MiniLM-L6-v2, that runs in the\ngateway, for the cache, the classifier and checks\nDefault: none, and so none of the three")->type_name("MODEL");
  add_number<std::size_t>(app, "--retries", o.retries, 0, 10, "How often a failed request is sent again, if no part of its\nanswer has come. Default: 1");
  add_seconds(app, "--connect-time", o.upstream.connect_time, "The longest time to reach a server (then 502). Default: 5");
  add_seconds(app, "--answer-time", o.upstream.answer_time, "The longest time until an answer begins (then 504)\nDefault: 300");
  add_seconds(app, "--silence", o.upstream.silence, "The longest time between two pieces of an answer, before it\nbreaks off. Default: 60");
  add_bytes(app, "--max-answer", o.upstream.answer_bytes, "The most bytes of an answer. Default: 64MiB");
}

void add_cache_options(CLI::App& app, Options& o) {
  app.add_flag_function("--no-cache", [&o](std::int64_t) { o.caches = false; }, "Do not reuse answers");
  add_number<double>(app, "--threshold", o.cache.threshold, 0.0, 1.0, "The least similarity, 0 to 1, of two questions that share an\nanswer. Default: 0.95");
  add_seconds(app, "--ttl", o.cache.time_to_live, "How long an answer may be reused. Default: 3600", 30 * 86400);
  add_bytes(app, "--cache-size", o.cache.bytes, "The most memory of the cache. Default: 256MiB");
  add_number<double>(app, "--cache-temperature", o.cache_limits.temperature, 0.0, 2.0, "Requests with a higher temperature are not cached. Default: 1");
  add_number<std::size_t>(app, "--cache-turns", o.cache_limits.turns, 1, 1000, "Conversations with more user messages are not cached\nDefault: 4");
  app.add_option_function<std::vector<std::string>>(
         "--never",
         [&o](const std::vector<std::string>& all) {
           for (const std::string& each : all) o.never_cached.push_back(pattern_from("--never", each));
         },
         "A regular expression (PCRE2). Answers to questions that\nmatch are never reused. May be given again. Default: none")
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
         "A file with such expressions, one in each line; lines that\nbegin with # are left out")
      ->type_name("FILE");
}

void add_routing_options(CLI::App& app, Options& o) {
  app.add_option_function<std::string>("--rules", [&o](const std::string& path) { o.rules = read_rules(path); }, "A JSON file of rules that choose a model. Default: no rules")->type_name("FILE");
  app.add_option_function<std::string>("--classifier", [&o](const std::string& path) { o.classifier = Classifier::read_file(path); },
                                       "A JSON file of weights that tell difficult questions from\neasy ones. Default: no classifier")
      ->type_name("FILE");
  add_route(app, "--easy", o.easy, "The tier (small, large, adaptive) of questions that the\nclassifier takes for easy. Default: adaptive");
  add_route(app, "--default", o.otherwise, "The tier of questions that neither a rule nor the classifier\ndecides about. Default: adaptive");
  add_number<double>(app, "--least-logprob", o.certainty.least_logprob, -100.0, 0.0,
                     "If the mean log-probability of the tokens of an adaptive\nanswer is lower, the large model answers instead\nDefault: -0.7");
  app.add_option_function<std::string>("--most-entropy", [&o](const std::string& text) { o.certainty.most_entropy = number_from<double>("--most-entropy", text, 0.0, 20.0); },
                                       "If the mean entropy of an adaptive answer, in nats, is\nhigher, the large model answers instead. Default: no limit")
      ->type_name("N");
}

void add_prompt_options(CLI::App& app, Options& o) {
  app.add_option("--compressor", o.scorer, "A small model that runs in the gateway and shortens prompts\nDefault: prompts stay as they are")->type_name("MODEL");
  add_percent(app, "--keep", o.compress.keep, "The share of a long text's tokens that is kept, in percent\nDefault: 80");
  add_bytes(app, "--compress-over", o.compress.least_bytes, "Texts of fewer bytes stay as they are. Default: 2000");
  add_bytes(app, "--compress-under", o.compress.most_bytes, "Texts of more bytes stay as they are, because shortening\ntakes time for each token. Default: 64KiB");
  app.add_flag("--compress-system", o.compress.system_too, "Shorten system messages too");
  app.add_flag("--compress-code", o.compress.code_too, "Shorten code between ``` lines too");
}

void add_check_options(CLI::App& app, Options& o) {
  add_percent(app, "--check", o.quality.share, "The share of reused answers and of the small model's answers,\nin percent, that the large model computes again in the\nbackground, to compare. Default: 0");
  add_number<double>(app, "--agreement", o.quality.agreement, 0.0, 1.0, "An answer whose similarity to the large model's, 0 to 1, is\nlower counts as wrong, and leaves the cache. Default: 0.7");
  app.add_option("--check-log", o.quality.log, "Add a line of JSON to this file for each check, with the\nquestion and both answers. Default: no log")->type_name("FILE");
  add_number<std::uint64_t>(app, "--check-seed", o.quality.seed, 0, UINT64_MAX, "The seed of the random choice of answers to check\nDefault: 1");
}

void add_network_options(CLI::App& app, Options& o) {
  server::add_address(app, o.http, 8090);
  server::add_tls(app, o.http);
  app.add_option_function<std::string>("--api-key-file", [&o](const std::string& path) { o.gateway.keys.read_file(path); },
                                       "Serve only requests with one of the keys in this file. A\nline is KEY or NAME KEY. Each name is a tenant: tenants\nshare no answers. Default: no key is needed, and each key\nthat clients send is a tenant")
      ->type_name("FILE");
  app.add_option_function<std::string>(
         "--tenant-header",
         [&o](std::string name) {
           for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
           o.gateway.tenant_header = std::move(name);
         },
         "A header whose value is a part of the tenant's name. A proxy\nin front of the gateway must set it. Default: none")
      ->type_name("NAME");
  add_number<std::size_t>(app, "--at-once", o.gateway.at_once, 1, 1024, "The most questions that are answered at once. Default: 32");
  add_number<std::size_t>(app, "--max-waiting", o.gateway.most_waiting, 0, 100'000, "The most questions that wait; more are refused (429)\nDefault: 256");
  add_bytes(app, "--max-waiting-bytes", o.gateway.body_bytes, "The most memory of the bodies of all questions that wait or\nare answered; more are refused (429). Default: 256MiB");
  add_number<std::size_t>(app, "--max-body", o.http.body_bytes, 1024, std::size_t{1} << 30, "The most bytes of a request's body (else 413)\nDefault: 16777216");
  add_seconds(app, "--drain-time", o.drain_time, "How long running answers may go on when the gateway ends\nDefault: 30");
  tessera::tool::add_threads(app, o.engine.threads);
  app.add_flag_function("--no-log", [&o](std::int64_t) { o.gateway.logs_requests = false; }, "Print no line for each request on standard error");
}

void check_together(const Options& o) {
  if (o.large.urls.empty()) throw UsageError("name the large model's server with --large URL");
  server::check_tls(o.http);
  if (o.embedder.empty() && o.classifier) throw UsageError("--classifier reads vectors of questions: name an encoder with --embedder");
  if (o.embedder.empty() && o.quality.share > 0) throw UsageError("--check compares vectors of answers: name an encoder with --embedder");
  if (o.small.urls.empty() && (!o.rules.empty() || o.classifier)) throw UsageError("--rules and --classifier choose between two models: name the other with --small URL");
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  CLI::App app("Stands in front of servers of OpenAI's API: reuses answers, sends easy questions to a small model, shortens prompts.", "tessera-gateway");
  const bool goes_on = server::parse_command_line(app, "tessera-gateway", kFooter, argc, argv, [&] {
    server::add_group(app, "Models", [&] { add_model_options(app, options); });
    server::add_group(app, "Cache", [&] { add_cache_options(app, options); });
    server::add_group(app, "Routing", [&] { add_routing_options(app, options); });
    server::add_group(app, "Prompts", [&] { add_prompt_options(app, options); });
    server::add_group(app, "Checks", [&] { add_check_options(app, options); });
    server::add_group(app, "Network", [&] { add_network_options(app, options); });
  });
  if (!goes_on) return std::nullopt;
  check_together(options);
  return options;
}

}  // namespace gateway

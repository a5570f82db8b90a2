#include "options.hpp"

#include <limits>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "adapter_option.hpp"
#include "command_line.hpp"
#include "failure.hpp"
#include "fields/duration.hpp"
#include "kv_options.hpp"
#include "machine_options.hpp"
#include "service_options.hpp"
#include "system/program.hpp"

namespace server {

using tessera::tool::parse_tokens;

namespace {

constexpr const char* kFooter = R"(
Examples:
  tessera-server                                   the model in this program, on http://127.0.0.1:8080
  tessera-server -m model.gguf --port 0            a port that is free; the first line says which
  tessera-server -m chat=model.gguf -m vectors=all-MiniLM-L6-v2 --pin chat    two models; requests name them
  tessera-server --models ~/models --memory 16GiB --keep-alive 10m            each model is loaded when a request names it
  tessera-server -m model.gguf --host 0.0.0.0 --api-key-file keys.txt --tls-cert cert.pem --tls-key key.pem

  curl http://127.0.0.1:8080/v1/chat/completions -H "Content-Type: application/json" \
       -d '{"messages": [{"role": "user", "content": "Hello"}]}'

The web page at / is for talking with a model, and the page at /status shows how busy the server is. The base URL for clients of
OpenAI's API is http://HOST:PORT/v1, and for clients of Anthropic's and Ollama's APIs it is http://HOST:PORT. SIGTERM or Ctrl-C
ends the server when the running answers are done; a second one ends it at once. docs/server.md says more.)";

template <class T>
CLI::Option* add_choice(CLI::App& app, const std::string& name, std::vector<std::pair<std::string, T>> choices, std::function<void(const T&)> take,
                        const std::string& description) {
  std::string names;
  for (const auto& each : choices) names += (names.empty() ? "" : "|") + each.first;
  return app
      .add_option_function<std::string>(
          name,
          [=](const std::string& text) {
            for (const auto& [choice, meaning] : choices) {
              if (text == choice) return take(meaning);
            }
            throw UsageError(fmt::format("{}: \"{}\" is not one of {}", name, text, names));
          },
          description)
      ->type_name(names);
}

void add_model_options(CLI::App& app, Options& o) {
  const auto add_texts = [&](const char* names, std::vector<std::string>& target, const char* description) {
    return app.add_option(names, target, description)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
  };
  add_texts("-m,--model", o.names.models,
                 "A GGUF file (the first one of a split model), or a folder with\n"
                 "config.json and safetensors files; or a model that another program\n"
                 "has fetched: ollama:NAME[:TAG], lmstudio:PUBLISHER/MODEL or\n"
                 "hf:ORGANISATION/MODEL. NAME=FILE gives the model a name\n"
                 "Given again: a further model, which is loaded when a request\n"
                 "names it. Default: the model in this program")->type_name("FILE");
  add_texts("--model-id", o.names.ids, "The model's name in requests. Given again: the name of the\nnext -m. Default: the file's name")->type_name("NAME");
  app.add_option("--models", o.names.folder, "Serve each GGUF file and each model's folder in this folder\nDefault: only the models of -m")->type_name("FOLDER");
  add_texts("--pin", o.names.pins, "Load this model at the start, and never unload it. May be\ngiven again. Default: none")->type_name("NAME");
  add_bytes(app, "--memory", o.memory, "The most memory of all loaded models together, such as\n16GiB. If a model has no room, others are unloaded\nDefault: three quarters of the free memory; with one\nmodel, no limit");
  app.add_option_function<std::string>("--keep-alive", [&o](const std::string& text) {
       o.keep_alive = duration_of(text);
       if (!o.keep_alive) throw UsageError(fmt::format("--keep-alive: \"{}\" is not a time, such as 5m, 90 (seconds), or -1 (never)", text));
     },
                                       "Unload a model that no request has used for this long: 5m,\n90 (seconds), 0 (at once). Default: -1, never")
      ->type_name("TIME");
  add_seconds(app, "--load-time", o.load_time, "The longest time that a request waits until its model is\nloaded (else 503). The loading goes on. Default: 300");
  add_texts("--lora", o.adapters, "An adapter (LoRA) of the first model, or of MODEL: a GGUF file\nor a folder of PEFT. Requests use it by NAME in place of the\nmodel's name, or by the field \"lora\". Given again: a further one")->type_name("[MODEL/]NAME=FILE");
  const auto read_merges = [&o](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) o.engine.merge.push_back(tessera::tool::parse_adapter(text));
  };
  app.add_option_function<std::vector<std::string>>("--merge", read_merges, "An adapter (LoRA) that becomes part of the model's weights: a\nGGUF file or a folder of PEFT. Given again: a further one. Only\nfor a server with one model")
      ->type_name("FILE[:SCALE]")
      ->allow_extra_args(false);
  add_bytes(app, "--lora-memory", o.engine.adapter_budget, "Memory of a model's adapters together; the least used ones\nare dropped, and loaded again when a request names them.\nDefault: no limit");
  app.add_flag_function("--lora-updates", [&o](std::int64_t) { o.changes_adapters = true; },
                        "Requests may load and unload adapters, from any file that\nthis program can read: /v1/load_lora_adapter");
  app.add_option_function<std::string>("--draft-heads", [&o](const std::string& path) { o.engine.draft_heads = tessera::tool::path_of(path); },
                                       "Guess the next tokens of all answers with draft heads that were\ntrained for the model: a folder with Medusa or EAGLE heads, or\nllama.cpp's GGUF of an EAGLE-3 head. Answers stay the same, and\ncome sooner if most guesses are right. Only for a server with\none model. Default: none")
      ->type_name("FILE");
  app.add_option("--template", o.chat_template, "Use the chat template (Jinja) in this file instead of the\nmodel's. Only for a server with one model")->type_name("FILE");
}

void add_network_options(CLI::App& app, Options& o) {
  add_address(app, o.http, 8080);
  add_tls(app, o.http);
  app.add_option_function<std::string>(
         "--api-key-file", [&o](const std::string& path) { o.server.keys.read_file(path); },
         "Serve only requests with one of the keys in this file. A\nline is KEY or NAME KEY. Each name is a tenant: tenants\nshare the server fairly, and share no cached prompts\nDefault: no key is needed")
      ->type_name("FILE");
  app.add_option_function<std::string>("--api-key", [&o](const std::string& key) { o.server.keys.add(key); },
                                       "One such key. Others on this machine can see it in the list\nof processes: --api-key-file hides it")
      ->type_name("KEY");
  const auto read_origins = [&o](const std::vector<std::string>& origins) {
    for (const std::string& origin : origins) {
      const std::size_t scheme = origin.find("://");
      const bool is_origin = scheme != origin.npos && origin.size() > scheme + 3 && origin.find('/', scheme + 3) == origin.npos;
      if (origin != "*" && !is_origin) throw UsageError(fmt::format("--cors: \"{}\" is not an origin, such as https://app.example, and not * (all origins)", origin));
      o.server.cors.push_back(origin);
    }
  };
  app.add_option_function<std::vector<std::string>>("--cors", read_origins, "Let web pages of this origin (https://app.example) send\nrequests; *: pages of all origins. May be given again\nDefault: none")
      ->type_name("ORIGIN")
      ->allow_extra_args(false);
  app.add_flag_function("--strict-fields", [&o](std::int64_t) { o.server.strict_fields = true; },
                        "Refuse a request with a field that has no effect (400)\nDefault: the answer's header X-Tessera-Ignored names it");
  app.add_flag_function("--strict-model", [&o](std::int64_t) { o.strict_model = true; },
                        "Refuse a request that names another model (404). A server\nwith several models always does\nDefault: a single model answers to every name");
  app.add_flag_function("--no-page", [&o](std::int64_t) { o.server.serves_page = false; }, "Do not serve the web pages at / and /status");
}

// Options for prefill and decode on different servers (kv_transfer.hpp).
void add_transfer_options(CLI::App& app, Options& o) {
  const auto add_urls = [&app](const char* name, std::function<void(Url)> take, const char* description) {
    const auto read = [=](const std::vector<std::string>& texts) {
      for (const std::string& text : texts) {
        try {
          take(parse_url(text.find("://") == text.npos ? "http://" + text : text));
        } catch (const UsageError&) {
          throw UsageError(fmt::format("{}: \"{}\" is not the address of a server, such as 10.0.0.1:8080", name, text));
        }
      }
    };
    app.add_option_function<std::vector<std::string>>(name, read, description)->type_name("HOST:PORT")->allow_extra_args(false);
  };
  add_bytes(app, "--kv-exports", o.server.kv.exports.memory, "Memory for computed prompts that another server is to fetch\n(requests with kv_transfer_params), such as 4GiB. It comes\non top of --kv-budget. Default: 0, no prompt is kept");
  add_seconds(app, "--kv-export-time", o.server.kv.exports.time, "How long such a prompt waits to be fetched. Default: 60");
  add_urls("--kv-address", [&o](Url url) { o.server.kv.address = std::move(url); }, "Where other servers and routers reach this one. Default:\n--host and --port");
  app.add_option("--kv-events", o.kv_events, "Publish which beginnings of prompts this server has computed,\nfor routers: over ZeroMQ in vLLM's layout, at an endpoint such\nas tcp://10.0.0.1:5557. Events contain the tokens of all prompts,\nand whoever can connect may read them. Default: nowhere")->type_name("ENDPOINT");
  add_urls("--kv-peer", [&o](Url url) { o.server.kv.peers.urls.push_back(std::move(url)); }, "A server from which this one may fetch computed prompts, and\nwhich is trusted to send right ones; https://HOST:PORT: over\nTLS. Given again: a further one. Default: none");
  add_seconds(app, "--kv-fetch-time", o.server.kv.peers.time, "The longest time of a fetch; then the prompt is computed\nhere. Default: 10");
}

void add_limit_options(CLI::App& app, Options& o) {
  add_number<std::uint32_t>(app, "--max-running", o.scheduler.limits.max_running, 1, 4096, "The most requests that are computed at once. Default: 64");
  add_number<std::size_t>(app, "--max-waiting", o.scheduler.max_waiting, 0, 1'000'000, "The most requests that wait for that; more are refused (429)\nDefault: 1024");
  add_number<std::size_t>(app, "--max-tokens", o.server.limits.max_tokens, 0, 1 << 30, "The most tokens of an answer; 0: as many as the context has\nroom for. Default: 0");
  add_number<std::uint32_t>(app, "--max-n", o.server.limits.samples, 1, 1024, "The most answers to one request (its field n). Default: 8");
  add_number<double>(app, "--rate", o.server.rate, 0.0, 1e9, "The most requests of one key in a minute; more are refused\n(429); 0: no limit. Default: 0");
  add_number<std::size_t>(app, "--max-connections", o.http.connections, 1, 1'000'000, "The most open connections; more wait. Default: 4096");
  add_number<std::size_t>(app, "--max-header", o.http.header_bytes, 1024, 1 << 20, "The most bytes of a request's header (else 431)\nDefault: 32768");
  add_number<std::size_t>(app, "--max-body", o.http.body_bytes, 1024, std::size_t{1} << 30, "The most bytes of a request's body (else 413)\nDefault: 16777216");
  add_seconds(app, "--header-time", o.http.header_time, "The longest time in which a client sends a request's header\n(else 408). Default: 15");
  add_seconds(app, "--body-time", o.http.body_time, "The longest time in which a client sends a request's body\n(else 408). Default: 60");
  add_seconds(app, "--idle-time", o.http.idle_time, "Close a connection that has had no request for this long\nDefault: 75");
  add_seconds(app, "--write-time", o.http.write_time, "Close a connection whose client has not read any byte of its\nanswer for this long. Default: 60");
  add_seconds(app, "--drain-time", o.drain_time, "How long running answers may go on when the server ends\nDefault: 30");
}

void add_scheduling_options(CLI::App& app, Options& o) {
  add_choice<std::string>(app, "--policy",
                          {{"fair", "fair"}, {"fcfs", "fcfs"}, {"priority", "priority"}, {"shortest", "shortest"}, {"deadline", "deadline"}, {"prefix", "prefix"}},
                          [&o](const std::string& name) {
                            using namespace tessera;
                            o.scheduler.policy = name == "fair"       ? fair_by_tenant()
                                                 : name == "priority" ? by_priority()
                                                 : name == "shortest" ? shortest_first()
                                                 : name == "deadline" ? earliest_deadline()
                                                 : name == "prefix"   ? prefix_first()
                                                                      : first_come();
                          },
                          "Which request is computed next. fair: each key gets the same\nshare. Default: fair");
  app.add_option_function<double>("--step-ms", [&o](double ms) { o.scheduler.limits.seconds = ms * 1e-3; },
                                  "The longest time, in milliseconds, that a piece of a long\nprompt may delay the next tokens of others. Default: 50")
      ->type_name("MS")
      ->check(CLI::Range(0.1, 1e6));
  add_bytes(app, "--kv-budget", o.engine.kv_budget, "The most memory of keys and values, such as 8GiB. Default:\nenough for --max-running full contexts and one more, but at\nmost half of the memory that the weights leave free");
  app.add_option_function<std::string>("--kv-file", [&o](const std::string& path) { o.engine.kv_file = tessera::tool::path_of(path); },
                                       "Make this file, and put keys and values into it that have no\nroom in memory. Default: they are computed again later")
      ->type_name("FILE");
  add_bytes(app, "--kv-file-size", o.engine.kv_file_bytes, "The size of --kv-file, such as 32GiB");
}

void add_machine_options(CLI::App& app, Options& o) {
  using tessera::DType;
  app.add_option_function<std::string>(
         "--ctx",
         [&o](const std::string& text) {
           const auto value = parse_tokens(text);
           if (!value || *value > std::numeric_limits<std::uint32_t>::max()) throw UsageError(fmt::format("--ctx: \"{}\" is not a number of tokens, such as 8192 or 8k", text));
           o.engine.context = static_cast<std::uint32_t>(*value);
         },
         "The most tokens of a prompt and its answer together, such\nas 8192 or 8k. Default: the model's own limit")
      ->type_name("N");
  tessera::tool::add_kv_dtype(app, o.engine.kv.dtype, "Type of cached keys and values. Default: auto");
  tessera::tool::add_kv_wide(app, o.engine.kv.wide);
  using tessera::Numerics;
  add_choice<Numerics>(app, "--numerics",
                       {{"auto", Numerics::automatic}, {"bf16", Numerics::bf16}, {"fastest", Numerics::fastest},
                        {"reference", Numerics::reference}, {"invariant", Numerics::invariant}},
                       [&o](const Numerics& numerics) { o.engine.numerics = numerics; },
                       "How products are computed. auto: in the way of each weight\n"
                       "format. bf16: in bf16. fastest: in bf16 for many tokens at\n"
                       "once, in 8 bits for few. reference: plainly, in f32.\n"
                       "invariant: with the same bits on every CPU. Default: auto");
  add_choice<tessera::Activations>(app, "--activations",
                                   {{"auto", tessera::Activations::automatic}, {"model", tessera::Activations::as_the_model_says}},
                                   [&o](const tessera::Activations& activations) { o.engine.activations = activations; },
                                   "How inputs of products are rounded in a model's folder whose\n"
                                   "activations are quantised (W8A8, FP8). auto: as --numerics\n"
                                   "says. model: as the folder says. Default: auto");
  tessera::tool::add_instruction_set(app, o.engine.instruction_set);
  tessera::tool::add_threads(app, o.engine.threads);
  tessera::tool::add_ranks(app, o.ranks);
  add_number<std::size_t>(app, "--http-threads", o.http.threads, 1, 64, "Threads that read requests and write answers. Default: 2");
  app.add_flag_function("--no-log", [&o](std::int64_t) { o.server.logs_requests = false; }, "Print no line for each request on standard error");
}

void check_together(Options& o) {
  const bool has_several = o.names.models.size() > 1 || o.names.folder;
  if (has_several && !o.engine.draft_heads.empty()) throw UsageError("--draft-heads is for a server with one model: leave it out, since heads are trained for one model");
  if (has_several && o.chat_template) throw UsageError("--template is for a server with one model: leave it out, since each model has a template of its own");
  if (has_several && !o.engine.merge.empty()) throw UsageError("--merge is for a server with one model: merge the adapter by tessera-convert, and name the file that it writes");
  if (has_several && !o.engine.kv_file.empty()) throw UsageError("--kv-file is for a server with one model: leave it out, or start a server for each model");
  if (o.names.models.empty() && !o.names.folder && (!o.names.pins.empty() || o.keep_alive)) {
    throw UsageError(fmt::format("{} is for models that are loaded and unloaded, which the model in this program is not: name models with -m or --models", o.names.pins.empty() ? "--keep-alive" : "--pin"));
  }
  check_tls(o.http);
  o.ranks.put_into(o.engine);
  if (has_several && !o.ranks.addresses.empty()) throw UsageError("--rank-at is for a server with one model: a tessera-rank serves one engine");
  KvTransferOptions& kv = o.server.kv;
  const bool is_any = o.http.host == "0.0.0.0" || o.http.host == "::";
  if ((kv.exports.memory > 0 || !o.kv_events.empty()) && kv.address.host.empty() && is_any) {
    throw UsageError(fmt::format("{}: other servers cannot reach {}: give the address at which they reach this server as --kv-address HOST:PORT", kv.exports.memory > 0 ? "--kv-exports" : "--kv-events", o.http.host));
  }
  if (kv.exports.memory == 0 && o.kv_events.empty() && !kv.address.host.empty()) throw UsageError("--kv-address is for --kv-exports and --kv-events: give one of them too");
  if (o.engine.kv_file.empty() != (o.engine.kv_file_bytes == 0)) throw UsageError("--kv-file and --kv-file-size belong together: give both");
  if (o.scheduler.policy == nullptr) o.scheduler.policy = tessera::fair_by_tenant();
  o.server.max_running = o.scheduler.limits.max_running;
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  CLI::App app("Serves language models over HTTP, for clients of OpenAI's, Anthropic's and Ollama's APIs, with a web page to talk with a model.", "tessera-server");
  const bool goes_on = parse_command_line(app, "tessera-server", kFooter, argc, argv, [&] {
    add_group(app, "Model", [&] { add_model_options(app, options); });
    add_group(app, "Network", [&] { add_network_options(app, options); });
    add_group(app, "Prompts of several servers", [&] { add_transfer_options(app, options); });
    add_group(app, "Limits", [&] { add_limit_options(app, options); });
    add_group(app, "Scheduling", [&] { add_scheduling_options(app, options); });
    add_group(app, "Machine", [&] { add_machine_options(app, options); });
  });
  if (!goes_on) return std::nullopt;
  check_together(options);
  return options;
}

}  // namespace server

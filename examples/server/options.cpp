#include "options.hpp"

#include <charconv>
#include <limits>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command_line.hpp"
#include "duration.hpp"
#include "failure.hpp"
#include "kv_options.hpp"
#include "machine_options.hpp"
#include "sizes.hpp"
#include "system/program.hpp"

namespace server {

using tessera::tool::parse_tokens;

namespace {

constexpr const char* kFooter = R"(
Examples:
  tessera-server                                   the model in this program, on http://127.0.0.1:8080
  tessera-server -m model.gguf --port 0            a port that is free; the first line says which
  tessera-server -m chat=model.gguf -m vectors=all-MiniLM-L6-v2 --pin chat    two models; requests name them
  tessera-server --models ~/models --memory 16GiB --keep-alive 10m            each is loaded when a request names it
  tessera-server -m model.gguf --host 0.0.0.0 --api-key-file keys.txt --tls-cert cert.pem --tls-key key.pem

  curl http://127.0.0.1:8080/v1/chat/completions -H "Content-Type: application/json" \
       -d '{"messages": [{"role": "user", "content": "Hello"}]}'

The page at / talks with the model, /status shows how busy the server is. Clients of OpenAI's and Anthropic's APIs take
http://HOST:PORT/v1 and http://HOST:PORT as base URL. SIGTERM and Ctrl-C end the server after the answers that run; a second one
ends it at once. docs/server.md says more.)";

// Parses a number. The error names the allowed range.
template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& names, T& target, T least, T most, const std::string& description) {
  const std::string name = names.substr(names.rfind(',') + 1);
  return app
      .add_option_function<std::string>(
          names,
          [=, &target](const std::string& text) {
            T value{};
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (error != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most)) {
              throw UsageError(fmt::format("{}: \"{}\" is not a number from {} to {}", name, text, least, most));
            }
            target = value;
          },
          description)
      ->type_name("N");
}

template <class Target>
CLI::Option* add_seconds(CLI::App& app, const std::string& name, Target& target, const std::string& description) {
  return app
      .add_option_function<std::string>(
          name,
          [name, &target](const std::string& text) {
            unsigned value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (error != std::errc() || end != text.data() + text.size() || value > 86400) {
              throw UsageError(fmt::format("{}: \"{}\" is not a number of seconds from 0 to 86400", name, text));
            }
            target = std::chrono::seconds(value);
          },
          description)
      ->type_name("SECONDS");
}

CLI::Option* add_bytes(CLI::App& app, const std::string& name, std::uint64_t& target, const std::string& description) {
  return app
      .add_option_function<std::string>(
          name,
          [name, &target](const std::string& text) {
            const auto value = tessera::tool::parse_bytes(text);
            if (!value) throw UsageError(fmt::format("{}: {}", name, value.error().text()));
            target = *value;
          },
          description)
      ->type_name("SIZE");
}

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
            throw UsageError(fmt::format("{}: \"{}\" is none of {}", name, text, names));
          },
          description)
      ->type_name(names);
}

void add_model_options(CLI::App& app, Options& o) {
  const auto add_texts = [&](const char* names, std::vector<std::string>& target, const char* description) {
    return app.add_option(names, target, description)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
  };
  add_texts("-m,--model", o.names.models, "GGUF file (the first of a split one), or a folder as hubs publish models; or the name of one that another program\nhas fetched: ollama:NAME[:TAG], lmstudio:PUBLISHER/MODEL, hf:ORGANISATION/MODEL\nNAME=FILE names it. Given again: a further model, loaded when a request names it\nDefault: the model in this program")->type_name("FILE");
  add_texts("--model-id", o.names.ids, "Its name in requests. Default: the file's. Given again:\nthe name of the next -m")->type_name("NAME");
  app.add_option("--models", o.names.folder, "Serves each GGUF file and each model's folder in this folder")->type_name("FOLDER");
  add_texts("--pin", o.names.pins, "This model is loaded at the start, and never unloaded\nMay be given again")->type_name("NAME");
  add_bytes(app, "--memory", o.memory, "Memory of all loaded models together. A model that needs\nroom has others unloaded. Default: three quarters of the\nfree memory; with one model, no limit");
  app.add_option_function<std::string>("--keep-alive", [&o](const std::string& text) {
       o.keep_alive = duration_of(text);
       if (!o.keep_alive) throw UsageError(fmt::format("--keep-alive: \"{}\" is no duration, such as 5m, 90 (seconds), or -1 for ever", text));
     },
                                       "A model is unloaded when no request has used it for this\nlong: 5m, 90 (seconds), 0: at once. Default: -1, never")
      ->type_name("TIME");
  add_seconds(app, "--load-time", o.load_time, "The longest time that a request waits for its model (then\n503). Default: 300");
  add_texts("--lora", o.adapters, "An adapter (LoRA) of the first model, or of MODEL: a GGUF file\nor a folder of PEFT. Requests use it by NAME in place of the\nmodel's name, or by the field \"lora\". Given again: a further one")->type_name("[MODEL/]NAME=FILE");
  add_bytes(app, "--lora-memory", o.engine.adapter_budget, "Memory of a model's adapters together; the least used ones\nare dropped, and loaded again when a request names them.\nDefault: no limit");
  app.add_flag_function("--lora-updates", [&o](std::int64_t) { o.changes_adapters = true; },
                        "Requests may load and unload adapters, from any file that\nthis program can read: /v1/load_lora_adapter");
  app.add_option("--template", o.chat_template, "A chat template (Jinja) instead of the model's; for a server\nwith one model")->type_name("FILE");
}

void add_network_options(CLI::App& app, Options& o) {
  app.add_option("--host", o.http.host, "Where to listen; 0.0.0.0: everywhere. Default: 127.0.0.1, for this machine alone")->type_name("ADDRESS");
  add_number<std::uint16_t>(app, "-p,--port", o.http.port, 0, 65535, "0: one that is free. Default: 8080");
  app.add_option("--tls-cert", o.http.tls_certificate, "HTTPS with this certificate (chain, PEM)")->type_name("FILE");
  app.add_option("--tls-key", o.http.tls_key, "and its private key")->type_name("FILE");
  app.add_option_function<std::string>(
         "--api-key-file", [&o](const std::string& path) { o.server.keys.read_file(path); },
         "Who may ask: a key a line, or NAME KEY. Names are tenants:\nserved fairly, with prompts of their own")
      ->type_name("FILE");
  app.add_option_function<std::string>("--api-key", [&o](const std::string& key) { o.server.keys.add(key); },
                                       "A key on the command line, which others on this machine\ncan see")
      ->type_name("KEY");
  app.add_option_function<std::string>("--cors", [&o](const std::string& origin) {
       const std::size_t scheme = origin.find("://");
       const bool is_origin = scheme != origin.npos && origin.size() > scheme + 3 && origin.find('/', scheme + 3) == origin.npos;
       if (origin != "*" && !is_origin) throw UsageError(fmt::format("--cors: \"{}\" is no origin, such as https://app.example, nor *", origin));
       o.server.cors.push_back(origin);
     },
                                       "Pages of this origin (https://app.example) may ask; *: of\nany. May be given again. Default: none")
      ->type_name("ORIGIN");
  app.add_flag_function("--strict-fields", [&o](std::int64_t) { o.server.strict_fields = true; },
                        "A field that has no effect is an error (400), not a note in\nthe header X-Tessera-Ignored");
  app.add_flag_function("--strict-model", [&o](std::int64_t) { o.strict_model = true; },
                        "A request that names another model is an error (404), not\nanswered by this one. With several models it always is");
  app.add_flag_function("--no-page", [&o](std::int64_t) { o.server.serves_page = false; }, "Without the pages at / and /status");
}

void add_limit_options(CLI::App& app, Options& o) {
  add_number<std::uint32_t>(app, "--max-running", o.scheduler.limits.max_running, 1, 4096, "Requests that are computed at once. Default: 64");
  add_number<std::size_t>(app, "--max-waiting", o.scheduler.max_waiting, 0, 1'000'000, "That wait; more are refused (429). Default: 1024");
  add_number<std::size_t>(app, "--max-tokens", o.server.limits.max_tokens, 0, 1 << 30, "Of an answer. Default: 0, what the context has room for");
  add_number<std::uint32_t>(app, "--max-n", o.server.limits.samples, 1, 1024, "Answers to one request. Default: 8");
  add_number<double>(app, "--rate", o.server.rate, 0.0, 1e9, "Requests a minute of a key; more are refused (429)\nDefault: 0, any number");
  add_number<std::size_t>(app, "--max-connections", o.http.connections, 1, 1'000'000, "Open at once; more wait. Default: 4096");
  add_number<std::size_t>(app, "--max-header", o.http.header_bytes, 1024, 1 << 20, "Bytes of a request's header (431). Default: 32768");
  add_number<std::size_t>(app, "--max-body", o.http.body_bytes, 1024, std::size_t{1} << 30, "Bytes of its body (413). Default: 16777216");
  add_seconds(app, "--header-time", o.http.header_time, "To send a header (408). Default: 15");
  add_seconds(app, "--body-time", o.http.body_time, "To send a body (408). Default: 60");
  add_seconds(app, "--idle-time", o.http.idle_time, "Between requests of a connection. Default: 75");
  add_seconds(app, "--write-time", o.http.write_time, "Without a byte taken by a client that is to read. Default: 60");
  add_seconds(app, "--drain-time", o.drain_time, "For the answers that run when the server ends. Default: 30");
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
                          "Who comes next. Default: fair, by keys");
  app.add_option_function<double>("--step-ms", [&o](double ms) { o.scheduler.limits.seconds = ms * 1e-3; },
                                  "Milliseconds of a step in which others write: what a long\nprompt may hold them up. Default: 50")
      ->type_name("MS")
      ->check(CLI::Range(0.1, 1e6));
  add_bytes(app, "--kv-budget", o.engine.kv_budget, "Memory of keys and values. Default: what --max-running full\ncontexts need, at most half of what the machine has left");
  app.add_option_function<std::string>("--kv-file", [&o](const std::string& path) { o.engine.kv_file = tessera::tool::path_of(path); },
                                       "A new file for keys and values of requests that give way")
      ->type_name("FILE");
  add_bytes(app, "--kv-file-size", o.engine.kv_file_bytes, "Its size");
}

void add_machine_options(CLI::App& app, Options& o) {
  using tessera::DType;
  app.add_option_function<std::string>(
         "--ctx",
         [&o](const std::string& text) {
           const auto value = parse_tokens(text);
           if (!value || *value > std::numeric_limits<std::uint32_t>::max()) throw UsageError(fmt::format("--ctx: \"{}\" is no number of tokens, such as 8192 or 8k", text));
           o.engine.context = static_cast<std::uint32_t>(*value);
         },
         "Tokens of a prompt and its answer at most, 8192 or 8k\nDefault: the model's own")
      ->type_name("N");
  tessera::tool::add_kv_dtype(app, o.engine.kv.dtype, "Type of cached keys and values. Default: auto");
  tessera::tool::add_kv_wide(app, o.engine.kv.wide);
  using tessera::Numerics;
  add_choice<Numerics>(app, "--numerics",
                       {{"auto", Numerics::automatic}, {"bf16", Numerics::bf16}, {"fastest", Numerics::fastest},
                        {"reference", Numerics::reference}, {"invariant", Numerics::invariant}},
                       [&o](const Numerics& numerics) { o.engine.numerics = numerics; },
                       "How products are computed: in each weight format's own\nway, in bf16, in bf16 for many tokens at once and in 8 bits\n"
                       "for few, plainly in f32, or with the same bits on every CPU\nDefault: auto");
  tessera::tool::add_instruction_set(app, o.engine.instruction_set);
  tessera::tool::add_threads(app, o.engine.threads);
  add_number<std::size_t>(app, "--http-threads", o.http.threads, 1, 64, "Of connections. Default: 2");
  app.add_flag_function("--no-log", [&o](std::int64_t) { o.server.logs_requests = false; }, "No line a request on standard error");
}

struct HelpFormatter : CLI::Formatter {
  [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }
};

void check_together(Options& o) {
  const bool has_several = o.names.models.size() > 1 || o.names.folder;
  if (has_several && o.chat_template) throw UsageError("--template is for a server with one model: leave it out, since each model has a template of its own");
  if (has_several && !o.engine.kv_file.empty()) throw UsageError("--kv-file is for a server with one model: leave it out, or start a server for each model");
  if (o.names.models.empty() && !o.names.folder && (!o.names.pins.empty() || o.keep_alive)) {
    throw UsageError(fmt::format("{} is for models that can be loaded and unloaded: name some with -m or --models", o.names.pins.empty() ? "--keep-alive" : "--pin"));
  }
  if (o.http.tls_certificate.empty() != o.http.tls_key.empty()) throw UsageError("--tls-cert and --tls-key belong together");
  if (o.engine.kv_file.empty() != (o.engine.kv_file_bytes == 0)) throw UsageError("--kv-file and --kv-file-size belong together");
  if (o.scheduler.policy == nullptr) o.scheduler.policy = tessera::fair_by_tenant();
  o.server.max_running = o.scheduler.limits.max_running;
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  CLI::App app("Serves a language model over HTTP, as OpenAI's and Anthropic's clients know it, with a page to talk with it.", "tessera-server");
  tessera::tool::add_version(app, "tessera-server");
  app.footer(kFooter);
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(36);
  const auto group = [&](const char* name, auto&& add) {
    app.option_defaults()->group(name);
    add(app, options);
  };
  group("Model", add_model_options);
  group("Network", add_network_options);
  group("Limits", add_limit_options);
  group("Scheduling", add_scheduling_options);
  group("Machine", add_machine_options);
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

}  // namespace server

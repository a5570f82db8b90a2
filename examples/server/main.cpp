// tessera-server: serves models over HTTP. The scheduler chooses which requests are computed next, the engine computes them, and the
// server sends the answers.
#include <algorithm>
#include <cstdlib>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <thread>

#include <fmt/format.h>

#include "failure.hpp"
#include "models/memory_need.hpp"
#include "models/model_loader.hpp"
#include "options.hpp"
#include "service.hpp"
#include "system/end_signals.hpp"
#include "system/memory.hpp"
#include "system/program.hpp"

namespace {

using namespace server;
using tessera::Engine;
using tessera::ModelFile;

#ifdef SERVER_DEFAULT_MODEL
extern "C" const unsigned char default_model_begin[], default_model_end[];
#endif

// Returns the model inside the program.
ConfiguredModel own_model(const Options& options) {
#ifdef SERVER_DEFAULT_MODEL
  ConfiguredModel model{.id = options.names.ids.empty() ? "tessera-stories" : options.names.ids.front()};
  model.embedded = std::make_shared<const ModelFile>(value(ModelFile::from_memory(std::as_bytes(std::span(default_model_begin, default_model_end)))));
  return model;
#else
  (void)options;
  throw Failure(tessera::ErrorCode::not_found, "this program was built without a model; name one with -m PATH");
#endif
}

std::string read_file(const std::string& path) {
  const std::filesystem::path found = tessera::tool::path_of(path);
  std::ifstream file(found, std::ios::binary);
  if (!file || std::filesystem::is_directory(found)) throw Failure(tessera::ErrorCode::not_found, fmt::format("cannot read {}", path));
  return {std::istreambuf_iterator<char>(file), {}};
}

// Reads a model's file without its weights: makes the model's card, and plans its memory. Throws Failure.
void look_at(ConfiguredModel& model, const Options& options, const std::optional<std::string>& chat_template) {
  const auto source = model.embedded != nullptr ? model.embedded : value(tessera::open_model(model.path));
  const std::uint32_t max_running = options.scheduler.limits.max_running;
  tessera::EngineOptions engine = options.engine;
  if (engine.kv_budget == 0 && options.has_one_model()) engine.kv_budget = kv_budget_alone(*source, engine, max_running);
  model.need = need_of(*source, engine, max_running);
  model.card = make_card(model.id, *source, value(Engine::plan(*source, engine)), template_of(chat_template, *source));
}

// Returns the models of this server with their cards. Throws Failure if the file of a model that -m or --pin names cannot be read. If the
// file of any other model of the folder --models cannot be read, the model is listed with the error (ConfiguredModel::fault).
std::vector<ConfiguredModel> configure(const Options& options, const std::optional<std::string>& chat_template, std::uint64_t memory) {
  std::vector<ConfiguredModel> models = list_configured(options.names);
  if (models.empty()) models.push_back(own_model(options));
  if (options.has_one_model()) models.front().is_pinned = true;
  const std::size_t named = options.names.models.empty() && !options.names.folder ? 1 : options.names.models.size();  // of -m, or the program's
  std::vector<MemoryNeed> needs;
  for (std::size_t i = 0; i < models.size(); ++i) {
    try {
      look_at(models[i], options, chat_template);
    } catch (const Failure& failure) {
      if (i < named || models[i].is_pinned) throw;
      models[i].fault = failure.what();
      models[i].card.id = models[i].id;
    }
    needs.push_back(models[i].need);
  }
  if (!options.has_one_model()) share_kv(needs, memory);
  for (std::size_t i = 0; i < models.size(); ++i) {
    models[i].need = needs[i];
    models[i].card.bytes = needs[i].bytes();
  }
  return models;
}

// Checks that the pinned models fit into the memory. Throws Failure.
void check_pinned(const std::vector<ConfiguredModel>& models, std::uint64_t memory) {
  std::uint64_t bytes = 0;
  for (const ConfiguredModel& model : models) bytes += model.is_pinned ? model.need.bytes() : 0;
  if (bytes <= memory) return;
  throw Failure(tessera::ErrorCode::over_budget, fmt::format("{} {}, and --memory is {}: allow more, or lower --ctx, --kv-budget or --max-running",
                                                             models.size() == 1 ? "the model takes" : "the pinned models take", in_units(bytes), in_units(memory)));
}

// Loads the pinned models, and shows the progress.
void load_pinned(const Models& models, ModelLoader& loader) {
  const bool shows = tessera::tool::is_terminal(tessera::tool::Standard::error);
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (!models.is_pinned(i)) continue;
    int shown = -1;
    loader.load_now(i, [&](double share) {
      const int percent = static_cast<int>(share * 100.0);
      if (shows && percent != std::exchange(shown, percent)) fmt::print(stderr, "\rloading {:3} %", percent);
    });
    if (shown >= 0) fmt::print(stderr, "\r\x1b[K");
  }
}

// Loads the adapters of the pinned models, so that a file that is no adapter for its model is an error now, not at its first request. If the
// budget is full, an adapter drops the ones before it, and each dropped one is loaded again when a request names it.
void load_their_adapters(const Models& models) {
  for (const AdapterNames::View& view : models.adapters().views()) {
    if (!models.is_pinned(view.adapter.model)) continue;
    try {
      (void)models.hold(view.adapter.model)->shelf().take(view.adapter.path);
    } catch (const ApiError& error) {
      if (error.status == 400) throw Failure(tessera::ErrorCode::invalid_argument, fmt::format("--lora {}: {}", view.adapter.name, error.what()));
      fmt::print(stderr, "--lora {}: {}; requests that name it will be refused until there is memory\n", view.adapter.name, error.what());
    }
  }
}

// Prints the memory and the limits of the only model, and warnings about the model.
void greet_alone(const Options& options, const Models& models) {
  const ConfiguredModel& configured = models.configured(0);
  const auto lease = models.hold(0);
  const ServedModel& model = lease->model();
  const tessera::Plan& plan = model.engine().plan();
  fmt::print(stderr, "  weights {}, keys and values up to {} ({} a token), a context of {} tokens, {} requests at once, {} threads\n", in_units(plan.weights),
             in_units(configured.need.kv), in_units(plan.kv_per_token), model.context(), options.scheduler.limits.max_running,
             model.engine().threads());
  if (!model.has_template()) fmt::print(stderr, "  the model has no chat template: it reads the texts of a conversation and goes on from them\n");
  if (const std::string warning = model.calls_warning(); !warning.empty()) fmt::print(stderr, "  {}\n", warning);
}

// Lists several models, the memory that each takes when it is loaded, and which of them cannot be served.
void greet_several(const Models& models) {
  fmt::print(stderr, "  {} of memory for all loaded models; a model is loaded when a request names it\n", in_units(models.memory()));
  for (std::size_t i = 0; i < models.size(); ++i) {
    const ConfiguredModel& model = models.configured(i);
    if (!model.fault.empty()) {
      fmt::print(stderr, "  {}: cannot be served: {}\n", model.id, model.fault);
      continue;
    }
    fmt::print(stderr, "  {}: {} (weights {}, keys and values up to {}), a context of {} tokens{}{}\n", model.id, in_units(model.need.bytes()),
               in_units(model.card.weights), in_units(model.need.kv), model.card.context, model.is_pinned ? ", pinned" : "",
               model.need.bytes() > models.memory() ? ": more than --memory" : "");
  }
}

void greet(const Options& options, const Models& models, std::uint16_t port) {
  const std::string what = models.size() == 1 ? models.configured(0).id + " is" : fmt::format("{} models are", models.size());
  fmt::print("{} served at {}\n", what, url_of(options.http, port));
  std::fflush(stdout);
  if (options.has_one_model()) greet_alone(options, models);
  else greet_several(models);
  warn_of_open_address(options.http, !options.server.keys.empty());
}

// Returns the figures of all models together.
tessera::SchedulerFigures all_figures(const Models& models) {
  tessera::SchedulerFigures all;
  for (const ModelFigures& each : models.figures()) add_figures(all, each.scheduler);
  return all;
}

ModelsOptions models_options(const Options& options, std::uint64_t memory) {
  return {.memory = memory,
          .keep_alive = options.keep_alive.value_or(-1.0),
          .load_time = options.load_time,
          .max_waiting = std::max<std::size_t>(1, options.scheduler.max_waiting),
          .changes_adapters = options.changes_adapters};
}

int serve(Options options) {
  auto port = std::make_unique<HttpServer>(options.http);
  std::optional<std::string> template_text;
  if (options.chat_template) template_text = read_file(*options.chat_template);
  std::uint64_t memory = options.memory;
  if (memory == 0) memory = options.has_one_model() ? ~std::uint64_t{0} : available_memory() / 4 * 3;
  std::vector<ConfiguredModel> configured = configure(options, template_text, memory);
  check_pinned(configured, memory);

  options.server.is_private = is_local(options.http.host) && options.server.keys.empty();
  if (Url& address = options.server.kv.address; address.host.empty()) {
    address.host = options.http.host;
    address.port = fmt::format("{}", port->port());
  }
  ModelsOptions models_option = models_options(options, memory);
  models_option.adapters = list_adapters(options.adapters, configured);
  std::unique_ptr<KvEventPublisher> events;
  if (!options.kv_events.empty()) {
    events = std::make_unique<KvEventPublisher>(options.kv_events);
    events->set_address(options.server.kv.address.authority());
  }
  Models models(std::move(configured), std::move(models_option),
                {.any_name = !options.strict_model, .needs_name = options.names.models.empty() && options.names.folder.has_value()});
  Workers workers;
  Server server(options.server, models, workers);
  ModelLoader loader(models, workers, {.engine = options.engine, .scheduler = options.scheduler, .limits = options.server.limits, .chat_template = template_text, .events = events.get(),
                                       .logs = !options.has_one_model()});
  load_pinned(models, loader);
  load_their_adapters(models);
  // Until here SIGINT and SIGTERM end the program at once. The constructor of EndSignals blocks both signals, and this function waits for
  // them below. Threads that are made from here on inherit the block, so the server's threads get no signals. `signals` is static, because
  // a thread may still be in signals.wait() when the program ends.
  static const EndSignals signals;
  workers.start(options.workers);
  loader.start();
  const std::unique_ptr<HttpServer> http = std::move(port);  // destroyed before the objects that it calls
  server.set_connections([&http] { return http->connections(); });
  http->start([&server](HttpRequest request, HttpReplyPtr reply) { server.handle(std::move(request), std::move(reply)); }, refusal);
  greet(options, models, http->port());

  signals.wait();
  end_at_next_signal(signals);
  const tessera::SchedulerFigures now = all_figures(models);
  fmt::print(stderr, "ending: {} requests run, {} wait; up to {} s for them (once more ends at once)\n", now.running, now.waiting, options.drain_time.count());
  server.drain();
  http->drain();
  const auto end = std::chrono::steady_clock::now() + options.drain_time;
  while (!models.idle() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  // Waits until the computed answers are written and the clients have taken them.
  const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  if (models.idle()) http->flush(std::max(rest, std::chrono::milliseconds(2000)));
  // Closes the connections that still wait for an answer. The workers must still run here: close() waits until all replies are destroyed,
  // and the jobs of the workers hold replies.
  server.cut();
  const bool closed = http->close(std::chrono::seconds(10));
  const auto settled = std::chrono::steady_clock::now() + std::chrono::seconds(2);  // time for a step to see the cancelled requests
  while (!models.idle() && std::chrono::steady_clock::now() < settled) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const tessera::SchedulerFigures f = all_figures(models);
  fmt::print(stderr, "served {} requests, cut {}, {} tokens\n", f.finished, f.cancelled, f.tokens);
  if (!closed) std::_Exit(0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return server::run_service("tessera-server", argc, argv, [](int count, char** values) {
    auto options = server::parse_options(count, values);
    return options ? serve(*std::move(options)) : 0;
  });
}

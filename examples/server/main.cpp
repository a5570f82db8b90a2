// tessera-server: serves a model over HTTP. The engine computes, the scheduler chooses for which requests, the server answers.
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
#include "model_place.hpp"
#include "options.hpp"
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

std::shared_ptr<const tessera::ModelSource> open_model(const Options& options) {
  if (options.model) return value(tessera::open_model(value(tessera::tool::model_place(*options.model))));
#ifdef SERVER_DEFAULT_MODEL
  return std::make_shared<const ModelFile>(value(ModelFile::from_memory(std::as_bytes(std::span(default_model_begin, default_model_end)))));
#else
  throw Failure(tessera::ErrorCode::not_found, "this program was built without a model; name one with -m PATH");
#endif
}

// Returns the default KV budget: the bytes of max_running full contexts, but at most half of the memory that the weights leave free.
// Exception: never less than one and a quarter full contexts.
std::uint64_t choose_kv_budget(const tessera::ModelSource& source, const Options& options) {
  const tessera::Plan plan = value(Engine::plan(source, options.engine));
  const std::uint64_t wanted = std::max(plan.kv, std::uint64_t{1}) * options.scheduler.limits.max_running;
  const std::uint64_t left = available_memory() / 2, weights = std::min(plan.weights, left);
  return std::max(std::min(wanted, left - weights / 2), plan.kv + plan.kv / 4);
}

std::string read_file(const std::string& path) {
  const std::filesystem::path found = tessera::tool::path_of(path);
  std::ifstream file(found, std::ios::binary);
  if (!file || std::filesystem::is_directory(found)) throw Failure(tessera::ErrorCode::not_found, fmt::format("cannot read {}", path));
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the model's name for clients: by default the file's name, since names within files may have spaces and other characters.
std::string id_of(const Options& options) {
  if (!options.model_id.empty()) return options.model_id;
  if (!options.model) return "tessera-stories";
  const std::u8string stem = tessera::tool::path_of(*options.model).stem().u8string();
  return stem.empty() ? "model" : std::string(stem.begin(), stem.end());
}

Engine load(Options& options, const tessera::ModelSource& source) {
  if (options.engine.kv_budget == 0) options.engine.kv_budget = choose_kv_budget(source, options);
  int shown = -1;
  options.engine.log_level = tessera::LogLevel::warning;
  options.engine.log = [](tessera::LogLevel, std::string_view message) { fmt::print(stderr, "{}\n", message); };
  options.engine.progress = [&shown](std::uint64_t done, std::uint64_t total) {
    const int percent = total == 0 ? 100 : static_cast<int>(done * 100 / total);
    if (tessera::tool::is_terminal(tessera::tool::Standard::error) && percent != std::exchange(shown, percent)) fmt::print(stderr, "\rloading {:3} %", percent);
    return true;
  };
  Engine engine = options.model ? value(Engine::load(value(tessera::tool::model_place(*options.model)), options.engine)) : value(Engine::load(source, options.engine));
  if (shown >= 0) fmt::print(stderr, "\r\x1b[K");
  return engine;
}

std::string in_units(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value < 1e6) return fmt::format("{:.1f} kB", value / 1e3);
  return value < 1e9 ? fmt::format("{:.1f} MB", value / 1e6) : fmt::format("{:.2f} GB", value / 1e9);
}

bool is_local(const std::string& host) { return host == "127.0.0.1" || host == "::1" || host == "localhost"; }

void greet(const Options& options, const ServedModel& model, std::uint16_t port) {
  const tessera::Plan& plan = model.engine().plan();
  const bool v6 = options.http.host.find(':') != std::string::npos;
  fmt::print("{} is served at {}://{}{}{}:{}/\n", model.id(), options.http.tls_certificate.empty() ? "http" : "https", v6 ? "[" : "", options.http.host,
             v6 ? "]" : "", port);
  std::fflush(stdout);
  fmt::print(stderr, "  weights {}, keys and values up to {} ({} a token), a context of {} tokens, {} requests at once, {} threads\n", in_units(plan.weights),
             in_units(options.engine.kv_budget), in_units(plan.kv_per_token), model.context(), options.scheduler.limits.max_running,
             model.engine().threads());
  if (!model.has_template()) fmt::print(stderr, "  the model has no chat template: it reads the texts of a conversation and goes on from them\n");
  if (const std::string warning = model.calls_warning(); !warning.empty()) fmt::print(stderr, "  {}\n", warning);
  if (!is_local(options.http.host) && options.server.keys.empty()) fmt::print(stderr, "  anybody who reaches this address may ask: --api-key-file says who may\n");
}

int serve(Options options) {
  auto port = std::make_unique<HttpServer>(options.http);
  auto source = open_model(options);
  std::optional<tessera::ChatTemplate> chat_template;
  if (options.chat_template) {
    const auto special = value(tessera::SpecialTexts::from_settings(source->settings()));
    chat_template = value(tessera::ChatTemplate::parse(read_file(*options.chat_template), special));
  }
  Engine engine = load(options, *source);
  source.reset();  // an engine has copied what it needs
  // Until here a signal ends the program at once. From here on this function waits for signals, and the server's threads, which are made
  // later, do not get them. The program ends before the object does, as a thread may still wait.
  static const EndSignals signals;

  const std::string id = id_of(options);
  ServedModel model(engine, id, std::move(chat_template));
  tessera::Scheduler scheduler = value(tessera::Scheduler::create(engine, options.scheduler));
  Slices slices(scheduler, options.scheduler.limits.seconds);
  Workers workers(options.workers);
  options.server.is_private = is_local(options.http.host) && options.server.keys.empty();
  Server server(options.server, model, scheduler, slices, workers);
  tessera::Driver driver = value(tessera::Driver::start(scheduler));
  const std::unique_ptr<HttpServer> http = std::move(port);  // destroyed before the objects that it calls
  server.set_connections([&http] { return http->connections(); });
  http->start([&server](HttpRequest request, HttpReplyPtr reply) { server.handle(std::move(request), std::move(reply)); }, refusal);
  greet(options, model, http->port());

  signals.wait();
  std::thread([] {
    signals.wait();
    fmt::print(stderr, "ended at once\n");
    std::_Exit(130);
  }).detach();
  const tessera::SchedulerFigures now = scheduler.figures();
  fmt::print(stderr, "ending: {} requests run, {} wait; up to {} s for them (once more ends at once)\n", now.running, now.waiting, options.drain_time.count());
  server.drain();
  http->drain();
  const auto end = std::chrono::steady_clock::now() + options.drain_time;
  while (!scheduler.idle() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  // Computed answers still have to be written, and taken by the clients.
  const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  if (scheduler.idle()) http->flush(std::max(rest, std::chrono::milliseconds(2000)));
  // Closes the connections that still wait for an answer before the workers end: replies keep connections alive, and workers keep replies.
  server.cut();
  const bool closed = http->close(std::chrono::seconds(10));
  const auto settled = std::chrono::steady_clock::now() + std::chrono::seconds(2);  // time for a step to see the cancelled requests
  while (!scheduler.idle() && std::chrono::steady_clock::now() < settled) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const tessera::SchedulerFigures f = scheduler.figures();
  fmt::print(stderr, "served {} requests, cut {}, {} tokens\n", f.finished, f.cancelled, f.tokens);
  if (!closed) std::_Exit(0);
  return 0;
}

int complain(std::string_view message, int status) {
  fmt::print(stderr, "tessera-server: {}\n", message);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  tessera::tool::Program program(argc, argv);
  try {
    auto options = server::parse_options(program.argc(), program.argv());
    return options ? serve(*std::move(options)) : 0;
  } catch (const UsageError& error) {
    return complain(error.what(), 2);
  } catch (const Failure& failure) {
    return complain(failure.what(), failure.code == tessera::ErrorCode::cancelled ? 130 : 1);
  } catch (const std::exception& error) {
    return complain(error.what(), 1);
  }
}

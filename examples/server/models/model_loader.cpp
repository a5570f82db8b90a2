#include "models/model_loader.hpp"

#include <chrono>
#include <cstdio>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "failure.hpp"
#include "system/memory.hpp"

namespace server {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Writes a line of the log. A line that cannot be written is lost.
template <class... Args>
void log_line(fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    fmt::print(stderr, format, std::forward<Args>(args)...);
  } catch (...) {
  }
}

}  // namespace

ModelLoader::~ModelLoader() {
  models_.end();
  if (thread_.joinable()) thread_.join();
}

void ModelLoader::start() {
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (const auto model = models_.hold(i)) model->drive();
  }
  thread_ = std::thread([this] { work(); });
}

void ModelLoader::work() {
  for (;;) {
    try {
      Models::Task task = models_.next();
      switch (task.kind) {
        case Models::Task::Kind::end: return;
        case Models::Task::Kind::load: load(task.model); break;
        case Models::Task::Kind::unload:
          task.unloaded.reset();
          give_back_memory();
          models_.gone(task.model);
          if (options_.logs) log_line("{} is unloaded\n", models_.configured(task.model).id);
          break;
      }
    } catch (const std::exception& error) {  // no memory for a decision: next() decides again
      std::fprintf(stderr, "a step of loading was given up: %s\n", error.what());
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

void ModelLoader::load(std::size_t model) {
  const std::string& id = models_.configured(model).id;
  FileState files;
  const auto begin = Clock::now();
  auto looked = begin;
  bool is_wanted = true;
  const auto progress = [&](std::uint64_t done, std::uint64_t total) {
    if (seconds_since(looked) < 0.02) return true;
    looked = Clock::now();
    return is_wanted = models_.goes_on(model, total == 0 ? 0.0 : static_cast<double>(done) / static_cast<double>(total));
  };
  const auto refuse = [&](unsigned status, std::chrono::seconds pause, const std::string& why) {
    give_back_memory();
    if (options_.logs) log_line("{} could not be loaded: {}\n", id, why);
    models_.failed(model, {.error = ApiError(status, fmt::format("The model \"{}\" could not be loaded: {}", id, why), "model", "model_load_failed"),
                           .files = files, .again = Clock::now() + pause});
  };
  try {
    files = file_state(models_.configured(model).path);  // before the load, so that a change during the load counts
    auto made = make(model, progress);
    made->drive();
    models_.loaded(model, std::move(made), seconds_since(begin));
    if (options_.logs) log_line("{} is loaded, in {:.1f} s\n", id, seconds_since(begin));
  } catch (const Failure& failure) {
    using tessera::ErrorCode;
    // over_budget needs no pause: book() has recorded how much memory the model needs now, so other models are unloaded before the next
    // load.
    if (failure.code == ErrorCode::over_budget) return refuse(503, std::chrono::seconds(0), failure.what());
    if (failure.code == ErrorCode::out_of_memory) return refuse(503, kNoMemory, failure.what());
    if (failure.code != ErrorCode::cancelled || is_wanted) return refuse(500, kFaultyFile, failure.what());
    give_back_memory();
    if (options_.logs) log_line("{} is not loaded, as nobody waits for it any more\n", id);
    models_.given_up(model);
  } catch (const std::bad_alloc&) {
    refuse(503, kNoMemory, "there is no memory for it");
  } catch (const std::exception& error) {
    refuse(500, kFaultyFile, error.what());
  }
}

void ModelLoader::load_now(std::size_t model, const std::function<void(double share)>& progress) {
  const auto begin = Clock::now();
  models_.begin(model);
  auto made = make(model, [&](std::uint64_t done, std::uint64_t total) {
    progress(total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total));
    return true;
  });
  models_.loaded(model, std::move(made), seconds_since(begin));
}

std::shared_ptr<LoadedModel> ModelLoader::make(std::size_t model, tessera::LoadProgress progress) {
  const ConfiguredModel& configured = models_.configured(model);
  auto source = configured.embedded != nullptr ? configured.embedded : value(tessera::open_model(configured.path));
  tessera::EngineOptions engine_options = options_.engine;
  if (engine_options.kv_budget == 0) engine_options.kv_budget = configured.need.kv;
  const MemoryNeed need = need_of(*source, engine_options, options_.scheduler.limits.max_running);
  engine_options.kv_budget = need.kv;
  auto chat_template = template_of(options_.chat_template, *source);
  models_.book(model, need, make_card(configured.id, *source, value(tessera::Engine::plan(*source, engine_options)), chat_template));
  const std::string whose = models_.size() == 1 ? "" : configured.id + ": ";
  engine_options.log = [whose](tessera::LogLevel, std::string_view message) { log_line("{}{}\n", whose, message); };
  engine_options.log_level = tessera::LogLevel::warning;
  engine_options.progress = std::move(progress);
  const tessera::Engine engine = value(tessera::Engine::load(*source, engine_options));
  source.reset();  // the engine has copied what it needs
  tessera::SchedulerOptions scheduler = options_.scheduler;
  if (options_.events != nullptr) scheduler.on_kv_event = options_.events->sink(configured.id);
  return std::make_shared<LoadedModel>(engine, LoadedModel::Options{.id = configured.id, .chat_template = std::move(chat_template), .scheduler = std::move(scheduler),
                                                                    .limits = options_.limits, .stays = configured.is_pinned,
                                                                    .path = configured.path, .embedded = configured.embedded}, workers_);
}

}  // namespace server

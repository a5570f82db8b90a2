// Loads and unloads models one after the other, as Models::next() says, on the loader's own thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include <tessera/engine.hpp>
#include <tessera/scheduler/scheduler.hpp>

#include "fields/answer_fields.hpp"
#include "kv/kv_events.hpp"
#include "models/loaded_model.hpp"
#include "models/models.hpp"
#include "workers.hpp"

namespace server {

struct LoadOptions {
  tessera::EngineOptions engine{};          // kv_budget: the budget of each model; 0: MemoryNeed::kv of the model
  tessera::SchedulerOptions scheduler{};
  RequestLimits limits{};
  std::optional<std::string> chat_template{};  // a template's text that replaces the files' templates
  KvEventPublisher* events = nullptr;       // gets the changes of the prefix indices; must outlive the models
  bool logs = true;                         // prints on standard error what is loaded and unloaded
};

class ModelLoader {
 public:
  // `models` and `workers` must outlive the loader.
  ModelLoader(Models& models, Workers& workers, LoadOptions options) : models_(models), workers_(workers), options_(std::move(options)) {}
  // Cancels the load that runs.
  ~ModelLoader();

  // Loads a model on the caller's thread. Requests for the model wait until start() is called. Precondition: start() was not called. Throws
  // Failure.
  void load_now(std::size_t model, const std::function<void(double share)>& progress);
  // Begins to do what Models::next() says. All threads of this object are made here or later, and inherit the caller's mask of signals.
  void start();

 private:
  void work();
  void load(std::size_t model);
  [[nodiscard]] std::shared_ptr<LoadedModel> make(std::size_t model, tessera::LoadProgress progress);

  Models& models_;
  Workers& workers_;
  LoadOptions options_;
  std::thread thread_;
};

}  // namespace server

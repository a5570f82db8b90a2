// A loaded model, together with everything that answers its requests: the engine, the scheduler, and a driver, whose thread runs the
// scheduler. The destructor frees the model's memory.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "adapters/adapter_shelf.hpp"
#include "answers/slices.hpp"
#include "apis/api.hpp"
#include "models/served_model.hpp"
#include "workers.hpp"

namespace server {

class LoadedModel {
 public:
  struct Options {
    std::string id{};
    std::optional<tessera::ChatTemplate> chat_template{};  // replaces the file's template
    tessera::SchedulerOptions scheduler{};
    RequestLimits limits{};
    bool stays = true;  // the model is loaded as long as the server runs
    std::filesystem::path path{};  // the model's file or folder; empty: `embedded`
    std::shared_ptr<const tessera::ModelSource> embedded{};
  };
  // Throws Failure. `workers` must outlive the requests of this model.
  LoadedModel(const tessera::Engine& engine, Options options, Workers& workers);
  // Starts the thread that computes. Until then requests wait. Call this once. Throws Failure.
  void drive();
  // Precondition: no request is left.
  ~LoadedModel() = default;

  [[nodiscard]] const Api& api() const noexcept { return api_; }
  [[nodiscard]] const ServedModel& model() const noexcept { return model_; }
  [[nodiscard]] AdapterShelf& shelf() const noexcept { return shelf_; }
  [[nodiscard]] const Slices& slices() const noexcept { return slices_; }
  [[nodiscard]] tessera::Scheduler& scheduler() noexcept { return scheduler_; }

 private:
  // The order matters: each member uses the members before it.
  mutable AdapterShelf shelf_;
  ServedModel model_;
  tessera::Scheduler scheduler_;
  Slices slices_;
  Api api_;
  tessera::Driver driver_;
};

}  // namespace server

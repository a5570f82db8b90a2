#include "models/loaded_model.hpp"

#include <utility>

#include "failure.hpp"

namespace server {

LoadedModel::LoadedModel(const tessera::Engine& engine, Options options, Workers& workers)
    : shelf_(engine, std::move(options.path), std::move(options.embedded)),
      model_(engine, std::move(options.id), std::move(options.chat_template)),
      scheduler_(value(tessera::Scheduler::create(engine, options.scheduler))),
      slices_(scheduler_, options.scheduler.limits.seconds),
      api_{.job = {model_, scheduler_, slices_, workers}, .limits = options.limits, .stays = options.stays} {}

void LoadedModel::drive() { driver_ = value(tessera::Driver::start(scheduler_)); }

}  // namespace server

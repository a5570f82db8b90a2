// The figures of one model's work, over all times for which the model was loaded.
#pragma once

#include <cstdint>
#include <string>

#include <tessera/scheduler/scheduler.hpp>

namespace server {

class LoadedModel;

struct ModelFigures {
  std::string id{};
  bool is_loaded = false;
  std::uint64_t loads = 0;
  std::uint64_t bytes = 0;                       // planned memory, if the model is loaded
  tessera::SchedulerFigures scheduler{};
  std::uint64_t kv_used = 0, kv_total = 0;       // bytes of KV pages that sessions hold, and that they may hold
  std::uint64_t page_tokens = 0, page_bytes = 0;  // tokens and bytes of a page; 0: never loaded, or a model without keys and values
  std::uint64_t slices = 0, slice_rows = 0;
  std::uint64_t stopped = 0, cut = 0;            // answers that reached their end, and answers that reached max_tokens
};

// Adds the figures of a loaded model.
void add_figures(ModelFigures& sum, LoadedModel& model);
// Adds counts and histograms of a scheduler. Exception: tenants and costs are not added.
void add_figures(tessera::SchedulerFigures& sum, const tessera::SchedulerFigures& more);

}  // namespace server

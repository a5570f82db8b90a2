#include "models/model_figures.hpp"

#include <algorithm>

#include "models/loaded_model.hpp"

namespace server {

void add_figures(tessera::SchedulerFigures& sum, const tessera::SchedulerFigures& more) {
  using Sums = tessera::SchedulerFigures;
  for (tessera::Histogram Sums::*each : {&Sums::queue, &Sums::time_to_first_token, &Sums::inter_token, &Sums::per_output_token,
                                           &Sums::end_to_end, &Sums::step, &Sums::planning, &Sums::rows}) {
    (sum.*each).merge(more.*each);
  }
  for (std::uint64_t Sums::*each :
       {&Sums::submitted, &Sums::refused_busy, &Sums::refused_size, &Sums::refused_late, &Sums::finished, &Sums::cancelled, &Sums::failed,
        &Sums::late, &Sums::steps, &Sums::prompt_tokens, &Sums::reused_tokens, &Sums::tokens, &Sums::recomputed_tokens, &Sums::drafted,
        &Sums::accepted, &Sums::suspended, &Sums::recomputed, &Sums::out_of_room}) {
    sum.*each += more.*each;
  }
  sum.running += more.running;
  sum.waiting += more.waiting;
}

void add_figures(ModelFigures& sum, LoadedModel& model) {
  add_figures(sum.scheduler, model.scheduler().figures());
  const tessera::Engine& engine = model.model().engine();
  const std::uint64_t used = engine.kv_figures().used_bytes, room = engine.kv_room().bytes;
  sum.kv_used += used;
  sum.kv_total += used + std::min(room, ~std::uint64_t{0} - used);
  sum.page_tokens = engine.plan().page_tokens;
  sum.page_bytes = engine.plan().kv_per_token * sum.page_tokens;
  sum.slices += model.slices().slices();
  sum.slice_rows += model.slices().rows();
}

}  // namespace server

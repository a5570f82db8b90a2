#include "model_figures.hpp"

#include <algorithm>

#include "loaded_model.hpp"

namespace server {

void add_figures(tessera::SchedulerFigures& sum, const tessera::SchedulerFigures& more) {
  using Figures = tessera::SchedulerFigures;
  for (tessera::Histogram Figures::*each : {&Figures::queue, &Figures::time_to_first_token, &Figures::inter_token, &Figures::per_output_token,
                                           &Figures::end_to_end, &Figures::step, &Figures::planning, &Figures::rows}) {
    (sum.*each).merge(more.*each);
  }
  for (std::uint64_t Figures::*each :
       {&Figures::submitted, &Figures::refused_busy, &Figures::refused_size, &Figures::refused_late, &Figures::finished, &Figures::cancelled, &Figures::failed,
        &Figures::late, &Figures::steps, &Figures::prompt_tokens, &Figures::reused_tokens, &Figures::tokens, &Figures::recomputed_tokens, &Figures::drafted,
        &Figures::accepted, &Figures::suspended, &Figures::recomputed, &Figures::out_of_room}) {
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

// The fields of figures, by name. The JSON of the C ABI and the dicts of Python have the same fields. This is the only
// header of capi/ that the layer `python` includes.
#pragma once

#include <tessera/engine.hpp>
#include <tessera/generation.hpp>
#include <tessera/scheduler/scheduler.hpp>

namespace tessera::fields {

// A time in seconds, or "not yet".
struct Moment {
  double seconds = -1.0;  // negative: not yet
};

// Each function below calls field(name, value) for every field of its struct, in order. The value is an unsigned
// integer, a double, a bool, a Moment, a Histogram, or the map of tenants.
#define TESSERA_FIELD(name) field(#name, of.name)
#define TESSERA_MOMENT(name) field(#name, Moment{of.name})

template <class Field>
void each(const Figures& of, Field&& field) {
  TESSERA_FIELD(prompt_tokens);
  TESSERA_FIELD(tokens);
  TESSERA_FIELD(prompt_seconds);
  TESSERA_FIELD(time_to_first_token);
  TESSERA_FIELD(generation_seconds);
  TESSERA_FIELD(tokens_per_second);
  TESSERA_FIELD(bytes_per_token);
  TESSERA_FIELD(steps);
  TESSERA_FIELD(drafted);
  TESSERA_FIELD(accepted);
  TESSERA_FIELD(exited);
  TESSERA_FIELD(exit_tries);
  TESSERA_FIELD(layers_saved);
}

template <class Field>
void each(const KvFigures& of, Field&& field) {
  TESSERA_FIELD(held_bytes);
  TESSERA_FIELD(used_bytes);
  TESSERA_FIELD(cached_bytes);
  TESSERA_FIELD(free_bytes);
  TESSERA_FIELD(hits);
  TESSERA_FIELD(misses);
  TESSERA_FIELD(tokens_saved);
  TESSERA_FIELD(evictions);
  TESSERA_FIELD(copies);
  TESSERA_FIELD(file_bytes);
  TESSERA_FIELD(pages_written);
  TESSERA_FIELD(pages_read);
  TESSERA_FIELD(file_errors);
}

// The figures of an engine's pages, and the bytes that its sessions may still take.
struct EngineKv {
  explicit EngineKv(const Engine& engine) : figures(engine.kv_figures()), room_bytes(engine.kv_room().bytes) {}
  KvFigures figures;
  std::uint64_t room_bytes = 0;
};

template <class Field>
void each(const EngineKv& of, Field&& field) {
  each(of.figures, field);
  TESSERA_FIELD(room_bytes);
}

template <class Field>
void each(const RequestFigures& of, Field&& field) {
  TESSERA_MOMENT(submitted);
  TESSERA_MOMENT(scheduled);
  TESSERA_MOMENT(first_token);
  TESSERA_MOMENT(ended);
  TESSERA_FIELD(prompt_tokens);
  TESSERA_FIELD(reused_tokens);
  TESSERA_FIELD(computed_tokens);
  TESSERA_MOMENT(progressed);
  TESSERA_FIELD(tokens);
  TESSERA_FIELD(drafted);
  TESSERA_FIELD(accepted);
  TESSERA_FIELD(exited);
  TESSERA_FIELD(exit_tries);
  TESSERA_FIELD(recomputed_tokens);
  TESSERA_FIELD(preemptions);
  TESSERA_FIELD(late);
}

template <class Field>
void each(const Histogram& of, Field&& field) {
  field("count", of.count());
  field("mean", of.mean());
  field("p50", of.percentile(0.5));
  field("p90", of.percentile(0.9));
  field("p95", of.percentile(0.95));
  field("p99", of.percentile(0.99));
  field("max", of.max());
}

template <class Field>
void each(const TenantFigures& of, Field&& field) {
  TESSERA_FIELD(weight);
  TESSERA_FIELD(service);
  TESSERA_FIELD(requests);
}

template <class Field>
void each(const SchedulerFigures& of, Field&& field) {
  TESSERA_FIELD(running);
  TESSERA_FIELD(waiting);
  TESSERA_FIELD(submitted);
  TESSERA_FIELD(finished);
  TESSERA_FIELD(cancelled);
  TESSERA_FIELD(failed);
  TESSERA_FIELD(late);
  TESSERA_FIELD(refused_busy);
  TESSERA_FIELD(refused_size);
  TESSERA_FIELD(refused_late);
  TESSERA_FIELD(steps);
  TESSERA_FIELD(prompt_tokens);
  TESSERA_FIELD(reused_tokens);
  TESSERA_FIELD(tokens);
  TESSERA_FIELD(recomputed_tokens);
  TESSERA_FIELD(drafted);
  TESSERA_FIELD(accepted);
  TESSERA_FIELD(exited);
  TESSERA_FIELD(exit_tries);
  TESSERA_FIELD(suspended);
  TESSERA_FIELD(recomputed);
  TESSERA_FIELD(out_of_room);
  TESSERA_FIELD(queue);
  TESSERA_FIELD(time_to_first_token);
  TESSERA_FIELD(inter_token);
  TESSERA_FIELD(per_output_token);
  TESSERA_FIELD(end_to_end);
  TESSERA_FIELD(step);
  TESSERA_FIELD(planning);
  TESSERA_FIELD(rows);
  TESSERA_FIELD(cost_error);
  TESSERA_FIELD(tenants);
}

#undef TESSERA_FIELD
#undef TESSERA_MOMENT

}  // namespace tessera::fields

#include "figures.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <string_view>

#include <fmt/format.h>

#include "json_object.hpp"

namespace server {

using tessera::Histogram;
using tessera::Json;

namespace {

constexpr const char* kLabels = "model_name";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

// Writes families of metrics in Prometheus' text format. Each family has a line for each model, with the label model_name.
class Exposition {
 public:
  explicit Exposition(const std::vector<ModelFigures>& models) : models_(models) {
    for (const ModelFigures& model : models) labels_.push_back(fmt::format("{}=\"{}\"", kLabels, escaped(model.id)));
  }

  // Writes a family with one number for each model, which `of` returns.
  template <class Of>
  void number(std::string_view name, std::string_view type, std::string_view help, Of of) {
    head(name, type, help);
    for (std::size_t i = 0; i < models_.size(); ++i) text_ += fmt::format("{}{{{}}} {}\n", name, labels_[i], static_cast<double>(of(models_[i])));
  }
  void head(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  // Writes a line for each model, with the further labels `labels`. `of` returns the number of a model.
  template <class Of>
  void labelled(std::string_view name, std::string_view labels, Of of) {
    for (std::size_t i = 0; i < models_.size(); ++i) text_ += fmt::format("{}{{{},{}}} {}\n", name, labels_[i], labels, static_cast<double>(of(models_[i])));
  }
  // Writes a line for one model, with the further labels `labels`.
  void one_labelled(std::string_view name, std::size_t model, std::string_view labels, double value) {
    text_ += fmt::format("{}{{{},{}}} {}\n", name, labels_[model], labels, value);
  }
  // Write a number that belongs to the whole server. If the server has only one model, the number has the model's label.
  void alone(std::string_view name, std::string_view type, std::string_view help, double value) {
    head(name, type, help);
    alone_labelled(name, "", value);
  }
  void alone_labelled(std::string_view name, std::string_view labels, double value) {
    std::string all = models_.size() == 1 ? labels_[0] : "";
    if (!all.empty() && !labels.empty()) all += ',';
    all += labels;
    text_ += all.empty() ? fmt::format("{} {}\n", name, value) : fmt::format("{}{{{}}} {}\n", name, all, value);
  }
  // Writes a histogram in Prometheus' form, for each model: for each bound the number of values up to this bound. The bounds are powers of
  // two, from 2^10 microseconds (about a millisecond) to 2^28. The numbers are exact, because buckets of the library's Histogram end at
  // these bounds too.
  void histogram(std::string_view name, std::string_view help, Histogram tessera::SchedulerFigures::*which) {
    head(name, "histogram", help);
    for (std::size_t i = 0; i < models_.size(); ++i) {
      const Histogram& h = models_[i].scheduler.*which;
      const std::string& label = labels_[i];
      for (int power = 10; power <= 28; ++power) {
        const double border = std::ldexp(1e-6, power);
        text_ += fmt::format("{}_bucket{{{},le=\"{:.9g}\"}} {}\n", name, label, border, h.at_most(border));
      }
      text_ += fmt::format("{}_bucket{{{},le=\"+Inf\"}} {}\n{}_sum{{{}}} {}\n{}_count{{{}}} {}\n", name, label, h.count(), name, label, h.sum(), name,
                           label, h.count());
    }
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  const std::vector<ModelFigures>& models_;
  std::vector<std::string> labels_;  // of each model
  std::string text_;
};

Json spread(const Histogram& h, double unit) {
  return Object()
      .set("p50", h.percentile(0.5) * unit)
      .set("p95", h.percentile(0.95) * unit)
      .set("p99", h.percentile(0.99) * unit)
      .set("max", h.max() * unit)
      .set("mean", h.mean() * unit)
      .set("count", static_cast<std::int64_t>(h.count()));
}

double share(std::uint64_t part, std::uint64_t whole) { return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole); }

}  // namespace

void Figures::count_request(const std::string& endpoint, unsigned status) {
  const std::lock_guard lock(mutex_);
  ++requests_[{endpoint, status}];
}

void Figures::count_answer(const AnswerReport& report) {
  const std::lock_guard lock(mutex_);
  ++answers_;
  disconnected_ += report.status == 499 ? 1 : 0;
  prompt_tokens_ += report.usage.prompt_tokens;
  completion_tokens_ += report.usage.completion_tokens;
  cached_tokens_ += report.usage.cached_tokens;
}

std::string Figures::metrics(const Models& models, std::size_t connections) const {
  using tessera::SchedulerFigures;
  using Of = const ModelFigures&;
  const std::vector<ModelFigures> figures = models.figures();
  Exposition out(figures);
  out.number("vllm:num_requests_running", "gauge", "Requests that are computed", [](Of of) { return of.scheduler.running; });
  out.number("vllm:num_requests_waiting", "gauge", "Requests that wait", [](Of of) { return of.scheduler.waiting; });
  out.number("vllm:kv_cache_usage_perc", "gauge", "Share of the KV budget that sessions use (1: all)", [](Of of) { return share(of.kv_used, of.kv_total); });
  out.head("vllm:cache_config_info", "gauge", "Tokens of a KV page (block), and how many pages sessions may hold; the value is 1");
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const ModelFigures& one = figures[i];
    if (one.page_bytes > 0) out.one_labelled("vllm:cache_config_info", i, fmt::format("block_size=\"{}\",num_gpu_blocks=\"{}\"", one.page_tokens, one.kv_total / one.page_bytes), 1);
  }
  {  // a metric of vLLM: its labels name the adapters that requests use now, its value is the time
    std::string used;
    std::size_t all = 0;
    for (const AdapterNames::View& view : models.adapters().views()) {
      ++all;
      if (view.users != 0) used += (used.empty() ? "" : ",") + view.adapter.name;
    }
    out.head("vllm:lora_requests_info", "gauge", "Adapters that requests use; the value is the time in seconds since 1970");
    out.alone_labelled("vllm:lora_requests_info",
                       fmt::format("max_lora=\"{}\",running_lora_adapters=\"{}\",waiting_lora_adapters=\"\"", all, escaped(used)),
                       static_cast<double>(std::time(nullptr)));
  }
  out.number("vllm:num_preemptions_total", "counter", "Requests that gave way to another", [](Of of) { return of.scheduler.suspended + of.scheduler.recomputed; });
  out.number("vllm:spec_decode_num_draft_tokens_total", "counter", "Tokens that drafters guessed", [](Of of) { return of.scheduler.drafted; });
  out.number("vllm:spec_decode_num_accepted_tokens_total", "counter", "Guessed tokens that were right", [](Of of) { return of.scheduler.accepted; });
  out.number("vllm:prompt_tokens_total", "counter", "Tokens of prompts", [](Of of) { return of.scheduler.prompt_tokens; });
  out.number("vllm:generation_tokens_total", "counter", "Tokens drawn", [](Of of) { return of.scheduler.tokens; });
  out.number("vllm:prefix_cache_queries_total", "counter", "Tokens of prompts that were looked for in the prefix index", [](Of of) { return of.scheduler.prompt_tokens; });
  out.number("vllm:prefix_cache_hits_total", "counter", "Tokens of prompts that were found in the prefix index", [](Of of) { return of.scheduler.reused_tokens; });
  out.histogram("vllm:time_to_first_token_seconds", "Time from a request to its first token", &SchedulerFigures::time_to_first_token);
  out.histogram("vllm:inter_token_latency_seconds", "Time between two tokens of a request", &SchedulerFigures::inter_token);
  out.histogram("vllm:request_time_per_output_token_seconds", "Mean time of a request's tokens after the first", &SchedulerFigures::per_output_token);
  out.histogram("vllm:e2e_request_latency_seconds", "Time from a request to its last token", &SchedulerFigures::end_to_end);
  out.histogram("vllm:request_queue_time_seconds", "Time from a request to its first row", &SchedulerFigures::queue);
  out.histogram("tessera:step_seconds", "Time of a step of the scheduler", &SchedulerFigures::step);
  out.head("tessera:requests_refused_total", "counter", "Requests that were refused, by reason");
  out.labelled("tessera:requests_refused_total", "reason=\"busy\"", [](Of of) { return of.scheduler.refused_busy; });
  out.labelled("tessera:requests_refused_total", "reason=\"size\"", [](Of of) { return of.scheduler.refused_size; });
  out.labelled("tessera:requests_refused_total", "reason=\"late\"", [](Of of) { return of.scheduler.refused_late; });
  out.number("tessera:recomputed_tokens_total", "counter", "Tokens computed again after a request gave way", [](Of of) { return of.scheduler.recomputed_tokens; });
  out.number("tessera:slices_total", "counter", "Slices of texts to embed and of prompts to score, between two steps", [](Of of) { return of.slices; });
  out.number("tessera:slice_rows_total", "counter", "Their rows", [](Of of) { return of.slice_rows; });
  out.number("tessera:kv_bytes", "gauge", "Bytes of KV pages that sessions hold", [](Of of) { return of.kv_used; });
  if (figures.size() > 1) {
    out.number("tessera:model_loaded", "gauge", "1 while the model is loaded", [](Of of) { return of.is_loaded ? 1 : 0; });
    out.number("tessera:model_bytes", "gauge", "Planned memory of the model, while it is loaded", [](Of of) { return of.bytes; });
    out.number("tessera:model_loads_total", "counter", "Times that the model was loaded", [](Of of) { return of.loads; });
    out.alone("tessera:models_memory_bytes", "gauge", "Memory that all loaded models may take together", static_cast<double>(models.memory()));
  }
  out.alone("tessera:connections", "gauge", "Open connections", static_cast<double>(connections));
  out.head("vllm:request_success_total", "counter", "Answers (each of n) that ended, by finish reason");
  out.labelled("vllm:request_success_total", "finished_reason=\"stop\"", [](Of of) { return of.stopped; });
  out.labelled("vllm:request_success_total", "finished_reason=\"length\"", [](Of of) { return of.cut; });
  out.labelled("vllm:request_success_total", "finished_reason=\"abort\"", [](Of of) { return of.scheduler.cancelled; });
  out.labelled("vllm:request_success_total", "finished_reason=\"error\"", [](Of of) { return of.scheduler.failed; });
  out.head("tessera:http_requests_total", "counter", "Answers, by endpoint and status");
  const std::lock_guard lock(mutex_);
  for (const auto& [key, n] : requests_) {
    out.alone_labelled("tessera:http_requests_total", fmt::format("endpoint=\"{}\",status=\"{}\"", escaped(key.first), key.second), static_cast<double>(n));
  }
  out.alone("tessera:disconnected_total", "counter", "Requests whose client went away", static_cast<double>(disconnected_));
  return out.take();
}

namespace {

std::int64_t count(std::uint64_t n) { return static_cast<std::int64_t>(n); }

Json model_status(const ModelView& view, const ModelFigures& figures) {
  Object object = Object().set("id", view.card->id).set("state", std::string(to_string(view.state)));
  if (!view.fault.empty()) object.set("error", view.fault);
  return std::move(object)
      .set("pinned", view.is_pinned)
      .set("bytes", count(view.card->bytes))
      .set("loads", count(view.loads))
      .set("requests", count(view.requests))
      .set("waiting_for_load", count(view.waiting))
      .set("unloads_in_s", view.seconds_left >= 0.0 ? Json(view.seconds_left) : Json())
      .set("running", count(figures.scheduler.running))
      .set("waiting", count(figures.scheduler.waiting))
      .set("finished_total", count(figures.scheduler.finished))
      .set("tokens_generated_total", count(figures.scheduler.tokens))
      .set("kv_used_bytes", count(figures.kv_used))
      .set("kv_total_bytes", count(figures.kv_total));
}

}  // namespace

Json Figures::status(const Models& models, std::size_t connections, std::uint32_t max_running, bool draining) const {
  const std::vector<ModelFigures> each = models.figures();
  const std::vector<ModelView> views = models.views();
  ModelFigures all;
  Json::Array list;
  for (std::size_t i = 0; i < each.size(); ++i) {
    add_figures(all.scheduler, each[i].scheduler);
    all.kv_used += each[i].kv_used;
    all.kv_total += std::min(each[i].kv_total, ~std::uint64_t{0} - all.kv_total);
    list.push_back(model_status(views[i], each[i]));
  }
  const tessera::SchedulerFigures& f = all.scheduler;
  const double uptime = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  const auto loaded = static_cast<std::size_t>(std::ranges::count(views, ModelState::loaded, &ModelView::state));
  return Object()
      .set("model", views.size() == 1 ? views[0].card->id : fmt::format("{} models, {} loaded", views.size(), loaded))
      .set("uptime_s", uptime)
      .set("draining", draining)
      .set("connections", count(connections))
      .set("running", count(f.running))
      .set("waiting", count(f.waiting))
      .set("max_running", count(max_running))
      .set("requests_total", count(f.submitted))
      .set("finished_total", count(f.finished))
      .set("cancelled_total", count(f.cancelled))
      .set("failed_total", count(f.failed))
      .set("refused_total", count(f.refused_busy + f.refused_size + f.refused_late))
      .set("tokens_generated_total", count(f.tokens))
      .set("tokens_prompt_total", count(f.prompt_tokens))
      .set("kv_used_bytes", count(all.kv_used))
      .set("kv_total_bytes", count(all.kv_total))
      .set("prefix_hit_rate", share(f.reused_tokens, f.prompt_tokens))
      .set("preemptions_total", count(f.suspended + f.recomputed))
      .set("steps_total", count(f.steps))
      .set("step_ms", spread(f.step, 1e3))
      .set("batch_rows", spread(f.rows, 1.0))
      .set("ttft_ms", spread(f.time_to_first_token, 1e3))
      .set("itl_ms", spread(f.inter_token, 1e3))
      .set("e2e_ms", spread(f.end_to_end, 1e3))
      .set("models_memory_bytes", models.memory() == ~std::uint64_t{0} ? Json() : Json(count(models.memory())))
      .set("models", std::move(list));
}

}  // namespace server

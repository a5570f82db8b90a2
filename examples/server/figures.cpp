#include "figures.hpp"

#include <algorithm>
#include <cmath>
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

class Exposition {
 public:
  explicit Exposition(const std::string& model) : label_(fmt::format("{}=\"{}\"", kLabels, escaped(model))) {}

  void number(std::string_view name, std::string_view type, std::string_view help, double value) {
    head(name, type, help);
    text_ += fmt::format("{}{{{}}} {}\n", name, label_, value);
  }
  void head(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void labelled(std::string_view name, std::string_view labels, double value) {
    text_ += fmt::format("{}{{{},{}}} {}\n", name, label_, labels, value);
  }
  // Writes cumulative buckets whose upper bounds are powers of two, in microseconds: from 2^10 (about a millisecond) to 2^28. Buckets of
  // the histogram end at these values too, so the counts are exact.
  void histogram(std::string_view name, std::string_view help, const Histogram& h) {
    head(name, "histogram", help);
    for (int power = 10; power <= 28; ++power) {
      const double border = std::ldexp(1e-6, power);
      text_ += fmt::format("{}_bucket{{{},le=\"{:.9g}\"}} {}\n", name, label_, border, h.at_most(border));
    }
    text_ += fmt::format("{}_bucket{{{},le=\"+Inf\"}} {}\n{}_sum{{{}}} {}\n{}_count{{{}}} {}\n", name, label_, h.count(), name, label_, h.sum(), name,
                         label_, h.count());
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string label_, text_;
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

std::uint64_t kv_total(const ServedModel& model) {  // the bytes of KV pages that sessions hold, plus those that they may still get
  const std::uint64_t used = model.engine().kv_figures().used_bytes, room = model.engine().kv_room().bytes;
  return used + std::min(room, ~std::uint64_t{0} - used);
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
  stopped_ += report.stopped;
  cut_ += report.cut;
  disconnected_ += report.status == 499 ? 1 : 0;
  prompt_tokens_ += report.usage.prompt_tokens;
  completion_tokens_ += report.usage.completion_tokens;
  cached_tokens_ += report.usage.cached_tokens;
}

std::string Figures::metrics(const JobContext& job, std::size_t connections) const {
  const ServedModel& model = job.model;
  const tessera::SchedulerFigures f = job.scheduler.figures();
  const tessera::KvFigures kv = model.engine().kv_figures();
  const auto count = [](std::uint64_t n) { return static_cast<double>(n); };
  Exposition out(model.id());
  out.number("vllm:num_requests_running", "gauge", "Requests that are computed", count(f.running));
  out.number("vllm:num_requests_waiting", "gauge", "Requests that wait", count(f.waiting));
  out.number("vllm:kv_cache_usage_perc", "gauge", "Share of the KV budget that sessions use (1: all)", share(kv.used_bytes, kv_total(model)));
  out.number("vllm:num_preemptions_total", "counter", "Requests that gave way to another", count(f.suspended + f.recomputed));
  out.number("vllm:prompt_tokens_total", "counter", "Tokens of prompts", count(f.prompt_tokens));
  out.number("vllm:generation_tokens_total", "counter", "Tokens drawn", count(f.tokens));
  out.number("vllm:prefix_cache_queries_total", "counter", "Tokens of prompts that were looked for in the prefix index", count(f.prompt_tokens));
  out.number("vllm:prefix_cache_hits_total", "counter", "Of them, those that were there", count(f.reused_tokens));
  out.histogram("vllm:time_to_first_token_seconds", "From a request to its first token", f.time_to_first_token);
  out.histogram("vllm:inter_token_latency_seconds", "Between two tokens of a request", f.inter_token);
  out.histogram("vllm:request_time_per_output_token_seconds", "Of a request's tokens after the first, on average", f.per_output_token);
  out.histogram("vllm:e2e_request_latency_seconds", "From a request to its last token", f.end_to_end);
  out.histogram("vllm:request_queue_time_seconds", "From a request to its first row", f.queue);
  out.histogram("tessera:step_seconds", "A step of the scheduler", f.step);
  out.head("tessera:requests_refused_total", "counter", "Requests that were not taken, by why");
  out.labelled("tessera:requests_refused_total", "reason=\"busy\"", count(f.refused_busy));
  out.labelled("tessera:requests_refused_total", "reason=\"size\"", count(f.refused_size));
  out.labelled("tessera:requests_refused_total", "reason=\"late\"", count(f.refused_late));
  out.number("tessera:recomputed_tokens_total", "counter", "Tokens computed again after a request gave way", count(f.recomputed_tokens));
  out.number("tessera:slices_total", "counter", "Slices of texts to embed and of prompts to score, between two steps", count(job.slices.slices()));
  out.number("tessera:slice_rows_total", "counter", "Their rows", count(job.slices.rows()));
  out.number("tessera:kv_bytes", "gauge", "Bytes of KV pages that sessions hold", count(kv.used_bytes));
  out.number("tessera:connections", "gauge", "Open connections", count(connections));
  const std::lock_guard lock(mutex_);
  out.head("vllm:request_success_total", "counter", "Answers (each of n) that ended, by how");
  out.labelled("vllm:request_success_total", "finished_reason=\"stop\"", count(stopped_));
  out.labelled("vllm:request_success_total", "finished_reason=\"length\"", count(cut_));
  out.labelled("vllm:request_success_total", "finished_reason=\"abort\"", count(f.cancelled));
  out.labelled("vllm:request_success_total", "finished_reason=\"error\"", count(f.failed));
  out.head("tessera:http_requests_total", "counter", "Answers, by endpoint and status");
  for (const auto& [key, n] : requests_) {
    out.labelled("tessera:http_requests_total", fmt::format("endpoint=\"{}\",status=\"{}\"", escaped(key.first), key.second), count(n));
  }
  out.number("tessera:disconnected_total", "counter", "Requests whose client went away", count(disconnected_));
  return out.take();
}

Json Figures::status(const ServedModel& model, const tessera::Scheduler& scheduler, std::size_t connections, std::uint32_t max_running,
                     bool draining) const {
  const tessera::SchedulerFigures f = scheduler.figures();
  const tessera::KvFigures kv = model.engine().kv_figures();
  const auto count = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
  const double uptime = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  return Object()
      .set("model", model.id())
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
      .set("kv_used_bytes", count(kv.used_bytes))
      .set("kv_total_bytes", count(kv_total(model)))
      .set("prefix_hit_rate", share(f.reused_tokens, f.prompt_tokens))
      .set("preemptions_total", count(f.suspended + f.recomputed))
      .set("steps_total", count(f.steps))
      .set("step_ms", spread(f.step, 1e3))
      .set("batch_rows", spread(f.rows, 1.0))
      .set("ttft_ms", spread(f.time_to_first_token, 1e3))
      .set("itl_ms", spread(f.inter_token, 1e3))
      .set("e2e_ms", spread(f.end_to_end, 1e3));
}

}  // namespace server

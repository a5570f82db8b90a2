#include "describe.hpp"

#include <cmath>

#include <tessera/extend/files/settings.hpp>
#include <tessera/extend/kv/kv_pools.hpp>

namespace tessera::c {

namespace {

std::string_view name_of(KvKind kind) {
  return kind == KvKind::paged ? "paged" : kind == KvKind::contiguous ? "contiguous" : "auto";
}

Json value_of(const SettingValue& value) {
  struct Visitor {
    Json operator()(bool v) const { return v; }
    Json operator()(std::int64_t v) const { return v; }
    Json operator()(std::uint64_t v) const { return whole(v); }
    Json operator()(double v) const { return real(v); }
    Json operator()(std::string_view v) const { return v; }
    Json operator()(const ValueList&) const { return {}; }
  };
  return std::visit(Visitor{}, value);
}

Json describe_histogram(const Histogram& histogram) {
  Json json = Json::object();
  json.set("count", whole(histogram.count()));
  json.set("mean", real(histogram.mean()));
  json.set("p50", real(histogram.percentile(0.5)));
  json.set("p95", real(histogram.percentile(0.95)));
  json.set("p99", real(histogram.percentile(0.99)));
  json.set("max", real(histogram.max()));
  return json;
}

Json tokens_of(const std::vector<Token>& tokens) {
  Json::Array array;
  array.reserve(tokens.size());
  for (const Token token : tokens) array.emplace_back(token);
  return array;
}

}  // namespace

Json real(double number) { return std::isfinite(number) ? Json(number) : Json(); }

Json describe(const Plan& plan) {
  Json json = Json::object();
  json.set("weights", whole(plan.weights));
  json.set("kv", whole(plan.kv));
  json.set("kv_limit", whole(plan.kv_limit));
  json.set("kv_per_token", whole(plan.kv_per_token));
  json.set("workspace", whole(plan.workspace));
  json.set("host", whole(plan.host));
  json.set("loading", whole(plan.loading));
  json.set("peak", whole(plan.peak));
  json.set("device_peak", whole(plan.device_peak));
  json.set("weights_per_token", whole(plan.weights_per_token));
  json.set("context", whole(plan.context));
  json.set("kv_dtype", to_string(plan.kv_dtype));
  json.set("kv_kind", name_of(plan.kv_kind));
  json.set("page_tokens", whole(plan.page_tokens));
  return json;
}

Json describe(const std::vector<KernelUse>& kernels) {
  Json::Array list;
  for (const KernelUse& use : kernels) {
    Json json = Json::object();
    json.set("operation", use.operation);
    json.set("kernel", use.kernel);
    json.set("family", use.family);
    json.set("dtype", use.dtype);
    json.set("backend", use.backend);
    json.set("fallback", use.fallback);
    list.push_back(std::move(json));
  }
  return list;
}

Json describe_model(const Engine& engine) {
  const ModelSpec& spec = engine.spec();
  Json json = Json::object();
  json.set("architecture", spec.architecture);
  json.set("name", spec.name);
  json.set("vocabulary_size", whole(spec.vocab_size));
  json.set("embedding_size", whole(spec.d_model));
  json.set("layers", whole(spec.n_layers()));
  json.set("trained_context", whole(spec.context));
  json.set("context", whole(engine.plan().context));
  json.set("threads", whole(engine.threads()));
  json.set("bos", engine.tokenizer().bos() ? Json(*engine.tokenizer().bos()) : Json());
  json.set("eos", engine.tokenizer().eos() ? Json(*engine.tokenizer().eos()) : Json());
  json.set("has_chat_template", engine.metadata().chat_template({}).has_value());
  Json keys = Json::object();
  for (std::size_t i = 0;; ++i) {
    const auto key = engine.metadata().file_key(i);
    if (!key) break;
    keys.set(key->name, value_of(key->value));
  }
  json.set("keys", std::move(keys));
  return json;
}

Json describe_kv(const Engine& engine) {
  const KvFigures figures = engine.kv_figures();
  Json json = Json::object();
  json.set("held_bytes", whole(figures.held_bytes));
  json.set("used_bytes", whole(figures.used_bytes));
  json.set("cached_bytes", whole(figures.cached_bytes));
  json.set("free_bytes", whole(figures.free_bytes));
  json.set("room_bytes", whole(engine.kv_room().bytes));
  json.set("hits", whole(figures.hits));
  json.set("misses", whole(figures.misses));
  json.set("tokens_saved", whole(figures.tokens_saved));
  json.set("evictions", whole(figures.evictions));
  json.set("copies", whole(figures.copies));
  json.set("file_bytes", whole(figures.file_bytes));
  json.set("pages_written", whole(figures.pages_written));
  json.set("pages_read", whole(figures.pages_read));
  json.set("file_errors", whole(figures.file_errors));
  return json;
}

Json describe(const Session& session) {
  Json json = Json::object();
  json.set("tokens", whole(session.tokens().size()));
  json.set("position", whole(session.position()));
  json.set("next_position", whole(session.next_position()));
  json.set("has_pending", session.has_pending());
  json.set("context", whole(session.context()));
  json.set("reused", whole(session.reused()));
  json.set("edited", session.edited());
  json.set("suspended", session.suspended());
  json.set("kv_bytes", whole(session.kv().bytes()));
  json.set("kv_dtype", to_string(session.kv().dtype()));
  json.set("kv_kind", name_of(session.kv().kind()));
  json.set("page_tokens", whole(session.kv().layout().page_tokens));
  return json;
}

Json describe(const Figures& figures) {
  Json json = Json::object();
  json.set("prompt_tokens", whole(figures.prompt_tokens));
  json.set("tokens", whole(figures.tokens));
  json.set("prompt_seconds", real(figures.prompt_seconds));
  json.set("time_to_first_token", real(figures.time_to_first_token));
  json.set("generation_seconds", real(figures.generation_seconds));
  json.set("tokens_per_second", real(figures.tokens_per_second));
  json.set("bytes_per_token", whole(figures.bytes_per_token));
  json.set("steps", whole(figures.steps));
  json.set("drafted", whole(figures.drafted));
  json.set("accepted", whole(figures.accepted));
  return json;
}

Json describe(const Verification& found) {
  constexpr std::string_view kVerdicts[] = {"same", "differs", "unverifiable"};
  Json json = Json::object();
  json.set("verdict", kVerdicts[static_cast<std::size_t>(found.verdict)]);
  json.set("what", found.what);
  json.set("layer", whole(found.layer));
  json.set("head", whole(found.head));
  json.set("position", whole(found.position));
  json.set("part", found.is_state ? "state" : found.part == kv::KeyOrValue::key ? "key" : "value");
  json.set("records", whole(found.records));
  json.set("compared", whole(found.compared));
  json.set("logits_differ", found.logits_differ);
  return json;
}

Json describe(const RequestFigures& figures) {
  const auto time = [](double seconds) { return seconds < 0.0 ? Json() : real(seconds); };
  Json json = Json::object();
  json.set("submitted", time(figures.submitted));
  json.set("scheduled", time(figures.scheduled));
  json.set("first_token", time(figures.first_token));
  json.set("ended", time(figures.ended));
  json.set("prompt_tokens", whole(figures.prompt_tokens));
  json.set("reused_tokens", whole(figures.reused_tokens));
  json.set("computed_tokens", whole(figures.computed_tokens));
  json.set("progressed", time(figures.progressed));
  json.set("tokens", whole(figures.tokens));
  json.set("drafted", whole(figures.drafted));
  json.set("accepted", whole(figures.accepted));
  json.set("recomputed_tokens", whole(figures.recomputed_tokens));
  json.set("preemptions", whole(figures.preemptions));
  json.set("late", figures.late);
  return json;
}

Json describe(const SchedulerFigures& figures) {
  Json json = Json::object();
  json.set("running", whole(figures.running));
  json.set("waiting", whole(figures.waiting));
  json.set("submitted", whole(figures.submitted));
  json.set("finished", whole(figures.finished));
  json.set("cancelled", whole(figures.cancelled));
  json.set("failed", whole(figures.failed));
  json.set("late", whole(figures.late));
  json.set("refused_busy", whole(figures.refused_busy));
  json.set("refused_size", whole(figures.refused_size));
  json.set("refused_late", whole(figures.refused_late));
  json.set("steps", whole(figures.steps));
  json.set("prompt_tokens", whole(figures.prompt_tokens));
  json.set("reused_tokens", whole(figures.reused_tokens));
  json.set("tokens", whole(figures.tokens));
  json.set("recomputed_tokens", whole(figures.recomputed_tokens));
  json.set("drafted", whole(figures.drafted));
  json.set("accepted", whole(figures.accepted));
  json.set("suspended", whole(figures.suspended));
  json.set("recomputed", whole(figures.recomputed));
  json.set("out_of_room", whole(figures.out_of_room));
  json.set("queue", describe_histogram(figures.queue));
  json.set("time_to_first_token", describe_histogram(figures.time_to_first_token));
  json.set("inter_token", describe_histogram(figures.inter_token));
  json.set("per_output_token", describe_histogram(figures.per_output_token));
  json.set("end_to_end", describe_histogram(figures.end_to_end));
  json.set("step", describe_histogram(figures.step));
  json.set("planning", describe_histogram(figures.planning));
  json.set("rows", describe_histogram(figures.rows));
  json.set("cost_error", real(figures.cost_error));
  Json tenants = Json::object();
  for (const auto& [name, tenant] : figures.tenants) {
    Json one = Json::object();
    one.set("weight", real(tenant.weight));
    one.set("service", real(tenant.service));
    one.set("requests", whole(tenant.requests));
    tenants.members()->emplace_back(name, std::move(one));
  }
  json.set("tenants", std::move(tenants));
  return json;
}

Json describe(const std::vector<Beam>& beams) {
  Json::Array list;
  for (const Beam& beam : beams) {
    Json json = Json::object();
    json.set("text", beam.text);
    json.set("tokens", tokens_of(beam.tokens));
    json.set("score", real(beam.score));
    json.set("logprob", real(beam.logprob));
    json.set("finish_reason", to_string(beam.finish));
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace tessera::c

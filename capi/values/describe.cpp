#include "values/describe.hpp"

#include <cmath>
#include <concepts>
#include <cstdio>
#include <map>

#include <tessera/extend/files/settings.hpp>
#include <tessera/extend/kv/kv_pools.hpp>

#include "values/figure_fields.hpp"

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

// Collects the fields of figures as a JSON object.
struct FieldsObject {
  Json object = Json::object();

  template <class T>
  void operator()(std::string_view name, const T& value) {
    object.set(name, json_of(value));
  }

  template <std::unsigned_integral T>
  static Json json_of(T value) {
    return whole(value);
  }
  static Json json_of(bool value) { return value; }
  static Json json_of(double value) { return real(value); }
  static Json json_of(fields::Moment moment) { return moment.seconds < 0.0 ? Json() : real(moment.seconds); }
  static Json json_of(const Histogram& histogram) { return of(histogram); }
  static Json json_of(const std::map<std::string, TenantFigures, std::less<>>& tenants) {
    Json json = Json::object();
    for (const auto& [name, tenant] : tenants) json.members()->emplace_back(name, of(tenant));
    return json;
  }

  template <class Figures>
  static Json of(const Figures& figures) {
    FieldsObject made;
    fields::each(figures, made);
    return std::move(made.object);
  }
};

Json tokens_of(std::span<const Token> tokens) {
  Json::Array array;
  array.reserve(tokens.size());
  for (const Token token : tokens) array.emplace_back(token);
  return array;
}

std::string hex(const Hash128& hash) {
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(hash.high),
                static_cast<unsigned long long>(hash.low));
  return digits;
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
  json.set("adapters", whole(plan.adapters));
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
    json.set("kind", std::string(to_string(use.kind)));
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

Json describe_kv(const Engine& engine) { return FieldsObject::of(fields::EngineKv(engine)); }

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
  Json::Array adapters;
  for (const AdapterUse& use : must(session.adapters())) {
    Json one = Json::object();
    one.set("name", use.adapter.name());
    one.set("content", hex(use.adapter.content()));
    one.set("scale", real(use.scale));
    one.set("from", use.from ? whole(*use.from) : Json());
    adapters.push_back(std::move(one));
  }
  json.set("adapters", std::move(adapters));
  return json;
}

Json describe(const Adapter& adapter) {
  Json json = Json::object();
  json.set("name", adapter.name());
  json.set("base_name", adapter.base_name());
  json.set("content", hex(adapter.content()));
  json.set("bytes", whole(adapter.bytes()));
  json.set("rank", whole(adapter.rank()));
  json.set("matrices", whole(adapter.matrices()));
  json.set("invocation", tokens_of(adapter.invocation()));
  return json;
}

Json describe(const Figures& figures) { return FieldsObject::of(figures); }

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

Json describe(const RequestFigures& figures) { return FieldsObject::of(figures); }

Json describe(const SchedulerFigures& figures) { return FieldsObject::of(figures); }

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

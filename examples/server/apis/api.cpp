#include "apis/api.hpp"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <random>

#include <fmt/format.h>

#include "json_object.hpp"

namespace server {

using tessera::Json;

namespace {

// Returns the object of a model with its state, in the form of llama.cpp's router.
Object state_object(const ModelView& view) {
  Object status = Object().set("value", std::string(to_string(view.state)));
  if (!view.fault.empty()) status.set("failed", true).set("error", view.fault);
  return model_object(*view.card).set("status", std::move(status));
}

// Returns the object of an adapter, as vLLM lists it: with the model to which it belongs.
Object adapter_object(const Models& models, const ConfiguredAdapter& adapter) {
  const ModelView base = models.view(adapter.model);
  return Object()
      .set("id", adapter.name)
      .set("object", "model")
      .set("created", base.card->created)
      .set("owned_by", "tessera")
      .set("root", adapter.name)
      .set("parent", base.card->id)
      .set("max_model_len", static_cast<std::int64_t>(base.card->context));
}

// Returns a part of a path with its escapes decoded: "a%2Fb" is a/b. Invalid escapes stay.
std::string decoded(std::string_view part) {
  std::string text;
  for (std::size_t i = 0; i < part.size(); ++i) {
    unsigned byte = 0;
    const bool is_escape = part[i] == '%' && i + 2 < part.size() && std::from_chars(part.data() + i + 1, part.data() + i + 3, byte, 16).ptr == part.data() + i + 3;
    text += is_escape ? static_cast<char>(byte) : part[i];
    i += is_escape ? 2 : 0;
  }
  return text;
}

}  // namespace

Json read_body(const HttpRequest& request) {
  auto json = Json::parse(request.body);
  if (!json) throw ApiError(400, "The body is no JSON: " + json.error().text());
  return std::move(*json);
}

Json body_of(const Call& call, Endpoint endpoint) {
  Json json = call.body != nullptr ? std::move(*call.body) : read_body(call.request);
  sift(json, endpoint, call.notes);
  return json;
}

void pass_model(Fields& fields) { (void)fields.any("model"); }

std::string query_field(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view field = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(field.size() + 1, query.size()));
    const std::size_t equals = field.find('=');
    if (equals != field.npos && field.substr(0, equals) == name) return decoded(field.substr(equals + 1));
  }
  return {};
}

std::string new_id(std::string_view prefix) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("{}{:016x}{:08x}", prefix, random(), static_cast<std::uint32_t>(random()));
}

std::int64_t unix_time() { return std::time(nullptr); }

void list_models(const Models& models, const Call& call) {
  Json::Array list;
  for (const ModelView& view : models.views()) list.push_back(state_object(view));
  for (const AdapterNames::View& view : models.adapters().views()) list.push_back(adapter_object(models, view.adapter));
  call.reply->send({.body = Object().set("object", "list").set("data", std::move(list)).dump()});
}

void one_model(const Models& models, const Call& call) {
  constexpr std::string_view kPath = "/v1/models/";
  const std::string name = decoded(std::string_view(call.request.path).substr(kPath.size()));
  if (const auto named = models.adapters().find(name); named && !models.names().has(name)) {
    return call.reply->send({.body = adapter_object(models, named->adapter).dump()});
  }
  const ModelView view = models.view(models.names().find_exactly(name));
  call.reply->send({.body = state_object(view).dump()});
}

}  // namespace server

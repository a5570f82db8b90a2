#include "adapters/adapter_requests.hpp"

#include <algorithm>
#include <cmath>
#include <system_error>

#include <fmt/format.h>

#include "fields/fields.hpp"
#include "json_object.hpp"
#include "models/loaded_model.hpp"
#include "system/program.hpp"

namespace server {

using tessera::Json;

namespace {

constexpr std::size_t kMostAdapters = 16;  // the most adapters of a request
constexpr double kMostScale = 1e6;

NamedAdapter find_adapter(const Json* id, const AdapterNames& names, const std::string& field) {
  std::optional<NamedAdapter> found;
  if (const std::string* name = id->string()) {
    found = names.find(*name);
  } else if (const std::int64_t* number = id->integer(); number != nullptr && *number >= 0) {
    found = names.at(static_cast<std::size_t>(*number));
  } else {
    throw ApiError(400, "This must be an adapter's number or name: GET /lora-adapters lists both.", field);
  }
  if (!found) throw ApiError(404, "There is no such adapter: GET /lora-adapters lists them.", field, "not_found");
  return *std::move(found);
}

void check_updates(const Models& models) {
  if (!models.may_change_adapters()) {
    throw ApiError(403, "This server's adapters cannot be changed: start it with --lora-updates.", {}, "forbidden");
  }
}

}  // namespace

std::vector<NamedAdapter> take_lora_field(Json& body, const AdapterNames& names, std::size_t model) {
  std::vector<NamedAdapter> adapters;
  Json::Object* members = body.members();
  if (members == nullptr) return adapters;
  const auto field = std::ranges::find_if(*members, [](const auto& member) { return member.first == "lora"; });
  if (field == members->end()) return adapters;
  const Json list = std::move(field->second);
  members->erase(field);
  if (list.is_null()) return adapters;
  if (list.elements() == nullptr) throw ApiError(400, "This must be a list of {\"id\": 0, \"scale\": 1.0}.", "lora");
  if (list.elements()->size() > kMostAdapters) throw ApiError(400, fmt::format("A request has at most {} adapters.", kMostAdapters), "lora");
  for (std::size_t i = 0; i < list.elements()->size(); ++i) {
    const std::string path = fmt::format("lora[{}]", i);
    Fields fields((*list.elements())[i], path);
    NamedAdapter adapter = find_adapter(fields.need(fields.any("id"), "id"), names, path + ".id");
    adapter.scale = fields.number("scale", -kMostScale, kMostScale).value_or(1.0);
    if (adapter.adapter.model != model) throw ApiError(400, fmt::format("The adapter \"{}\" belongs to another model.", adapter.adapter.name), path + ".id");
    adapters.push_back(std::move(adapter));
  }
  return adapters;
}

std::vector<tessera::AdapterUse> load_adapters(const std::vector<NamedAdapter>& named, AdapterShelf& shelf) {
  std::vector<tessera::AdapterUse> uses;
  for (const NamedAdapter& one : named) {
    if (one.scale != 0.0) uses.push_back({.adapter = shelf.take(one.adapter.path), .scale = static_cast<float>(one.scale)});
  }
  return uses;
}

void list_adapters(const Models& models, const Call& call) {
  Json::Array list;
  for (const AdapterNames::View& view : models.adapters().views()) {
    list.push_back(Object()
                       .set("id", static_cast<std::int64_t>(list.size()))
                       .set("name", view.adapter.name)
                       .set("model", models.configured(view.adapter.model).id)
                       .set("scale", 0.0));  // with llama.cpp, 0 means: off unless a request asks for the adapter
  }
  call.reply->send({.body = Json(std::move(list)).dump()});
}

void load_adapter(const Models& models, const Call& call) {
  check_updates(models);
  Fields fields(*call.body);
  ConfiguredAdapter adapter;
  adapter.name = fields.need(fields.text("lora_name"), "lora_name");
  const std::string path = fields.need(fields.text("lora_path"), "lora_path");
  adapter.path = tessera::tool::path_of(path);
  adapter.model = models.names().find(fields.text("model").value_or(""));
  if (adapter.name.empty()) throw ApiError(400, "The name is empty.", "lora_name");
  std::error_code ignored;
  if (!std::filesystem::exists(adapter.path, ignored)) throw ApiError(404, fmt::format("There is no file {}.", path), "lora_path", "not_found");
  if (models.names().has(adapter.name)) throw ApiError(400, fmt::format("\"{}\" is a model's name.", adapter.name), "lora_name");
  // If the model is loaded, loads the adapter now, so that a file that does not fit the model is refused. If the model is not loaded, the
  // file is not checked, and the first request that uses the adapter gets the error.
  if (const ModelLease lease = models.hold(adapter.model)) (void)lease->shelf().take(adapter.path);
  const std::string done = fmt::format("Success: the adapter \"{}\" was added.", adapter.name);
  models.adapters().add(std::move(adapter));
  call.reply->send({.body = Object().set("status", "ok").set("message", done).dump()});
}

void unload_adapter(const Models& models, const Call& call) {
  check_updates(models);
  Fields fields(*call.body);
  const ConfiguredAdapter removed = models.adapters().remove(fields.need(fields.text("lora_name"), "lora_name"));
  if (const ModelLease lease = models.hold(removed.model)) lease->shelf().drop(removed.path);
  call.reply->send({.body = Object().set("status", "ok").set("message", fmt::format("Success: the adapter \"{}\" was removed.", removed.name)).dump()});
}

}  // namespace server

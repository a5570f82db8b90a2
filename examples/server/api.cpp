#include "api.hpp"

#include <charconv>
#include <ctime>
#include <random>

#include <fmt/format.h>

#include "json_object.hpp"

namespace server {

using tessera::Json;

namespace {

Object model_object(const ServedModel& model) {
  const tessera::ModelSpec& spec = model.engine().spec();
  const auto architecture = model.engine().metadata().string(tessera::Setting::architecture);
  Json::Array capabilities;
  for (std::string& capability : model.capabilities()) capabilities.emplace_back(std::move(capability));
  const Object meta = Object()
                        .set("context_length", static_cast<std::int64_t>(model.context()))
                        .set("vocabulary", static_cast<std::int64_t>(spec.vocab_size))
                        .set("weights_bytes", static_cast<std::int64_t>(model.engine().plan().weights))
                        .set("architecture", architecture ? Json(std::string_view(*architecture)) : Json())
                        .set("has_chat_template", model.has_template())
                        .set("capabilities", std::move(capabilities));
  return Object()
      .set("id", model.id())
      .set("object", "model")
      .set("created", model.created())
      .set("owned_by", "tessera")
      .set("max_model_len", static_cast<std::int64_t>(model.context()))
      .set("meta", meta);
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

ApiError no_such_model(std::string_view name, const ServedModel& model) {
  return {404, fmt::format("There is no model \"{}\" here; this server has \"{}\".", name, model.id()), "model", "model_not_found"};
}

}  // namespace

Json body_of(const Call& call, Endpoint endpoint) {
  auto json = Json::parse(call.request.body);
  if (!json) throw ApiError(400, "The body is no JSON: " + json.error().text());
  sift(*json, endpoint, call.notes);
  return std::move(*json);
}

void check_model(Fields& fields, const Api& api) {
  const auto name = fields.text("model");
  if (!api.strict_model || !name || name->empty() || *name == api.job.model.id()) return;
  throw no_such_model(*name, api.job.model);
}

std::string new_id(std::string_view prefix) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("{}{:016x}{:08x}", prefix, random(), static_cast<std::uint32_t>(random()));
}

std::int64_t unix_time() { return std::time(nullptr); }

HttpResponse list_models(const Api& api) {
  return {.body = Object().set("object", "list").set("data", Json::Array{model_object(api.job.model)}).dump()};
}

HttpResponse one_model(const Api& api, std::string_view id) {
  const std::string name = decoded(id);
  if (name != api.job.model.id()) throw no_such_model(name, api.job.model);
  return {.body = model_object(api.job.model).dump()};
}

}  // namespace server

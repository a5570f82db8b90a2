// GET /api/tags, /api/ps, /api/version and POST /api/show: the models of this server, loaded or not.
#include <optional>

#include <fmt/format.h>
#include <openssl/sha.h>

#include "answer_wish.hpp"
#include "json_object.hpp"
#include "names.hpp"
#include "ollama.hpp"

namespace server::ollama {

using tessera::Json;

namespace {

// The release of Ollama whose requests are supported. Clients read this version, and do not use features of newer releases.
constexpr const char* kVersion = "0.12.11";

Json details_of(const ModelCard& card) {
  return Object()
      .set("parent_model", "")
      .set("format", "gguf")
      .set("family", card.architecture)
      .set("families", Json::Array{Json(card.architecture)})
      .set("parameter_size", card.parameter_size)
      .set("quantization_level", card.format);
}

std::int64_t size_of(const ModelCard& card) { return static_cast<std::int64_t>(card.weights); }

// Returns a digest of name, size and format, because a checksum over gigabytes would take seconds at the start.
std::string digest_of(const ModelCard& card) {
  const std::string text = fmt::format("{} {} {} {}", card.id, card.architecture, size_of(card), card.format);
  unsigned char sum[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), sum);
  std::string hex;
  for (const unsigned char byte : sum) hex += fmt::format("{:02x}", byte);
  return hex;
}

Object listed(const ModelCard& card) {
  const std::string name = listed_name(card.id);
  return Object().set("name", name).set("model", name).set("size", size_of(card)).set("digest", digest_of(card)).set("details", details_of(card));
}

void send(const Call& call, const Object& object) { call.reply->send({.body = object.dump()}); }

Json::Array capabilities_of(const ModelCard& card) {
  Json::Array capabilities;
  if (card.writes) capabilities.emplace_back("completion");
  if (card.has_template()) capabilities.emplace_back("tools");  // the prompt describes tools in words if the template knows no tools
  if (card.reasons) capabilities.emplace_back("thinking");
  if (card.fills_in) capabilities.emplace_back("insert");
  if (!card.writes || card.embeds) capabilities.emplace_back("embedding");
  return capabilities;
}

Object running(const ModelView& view) {
  constexpr std::int64_t kYears = std::int64_t{100} * 365 * 86400;  // stands for "as long as the server runs"
  const ModelCard& card = *view.card;
  const bool ends = view.seconds_left >= 0.0 && view.seconds_left < static_cast<double>(kYears);
  const std::int64_t end = ends ? unix_time() + static_cast<std::int64_t>(view.seconds_left) : card.created + kYears;
  return listed(card)
      .set("expires_at", time_text(end))
      .set("size_vram", card.on_device ? size_of(card) : std::int64_t{0})
      .set("context_length", static_cast<std::int64_t>(card.context));
}

}  // namespace

void tags(const Models& models, const Call& call) {
  Json::Array list;
  for (const ModelView& view : models.views()) {
    if (view.card->weights == 0) continue;  // the model's file could not be read
    Object object = listed(*view.card);
    object.set("modified_at", time_text(view.card->created));
    list.emplace_back(std::move(object));
  }
  send(call, Object().set("models", std::move(list)));
}

void ps(const Models& models, const Call& call) {
  Json::Array list;
  for (const ModelView& view : models.views()) {
    if (view.state == ModelState::loaded) list.emplace_back(running(view));
  }
  send(call, Object().set("models", std::move(list)));
}

void version(const Models&, const Call& call) { send(call, Object().set("version", kVersion)); }

void show(const Models& models, const Call& call) {
  const Json body = body_of(call, kOllamaShow);
  Fields fields(body);
  const std::size_t model = models.names().find(asked_name(fields));
  const std::optional<double> keep_alive = keep_alive_of(fields);
  if (keep_alive && *keep_alive >= 0.0) call.notes.ignore("keep_alive", "keep_alive", "a model that is shown is not used.");
  (void)fields.boolean("verbose");
  fields.done(call.notes);
  const AnswerFields usual;
  const auto card = models.view(model).card;
  send(call, Object()
                 .set("license", card->license)
                 .set("modelfile", fmt::format("FROM {}\n", listed_name(card->id)))
                 .set("parameters", fmt::format("num_ctx {}\ntemperature {}\ntop_p {}", card->context, usual.temperature, usual.top_p))
                 .set("template", card->template_source)
                 .set("details", details_of(*card))
                 .set("model_info", card->info)
                 .set("capabilities", capabilities_of(*card))
                 .set("modified_at", time_text(card->created)));
}

}  // namespace server::ollama

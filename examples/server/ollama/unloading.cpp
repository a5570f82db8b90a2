// Requests without a prompt and with a keep_alive of 0, by which Ollama's clients unload a model.
#include "json_object.hpp"
#include "names.hpp"
#include "ollama.hpp"
#include "writer.hpp"

namespace server::ollama {

using tessera::Json;

namespace {

// Returns whether a field is absent, null, "" or [].
bool lacks(const Json& body, std::string_view name) {
  const Json* field = body.find(name);
  if (field == nullptr || field->is_null()) return true;
  if (field->string() != nullptr) return field->string()->empty();
  return field->elements() != nullptr && field->elements()->empty();
}

}  // namespace

bool asks_to_unload(std::string_view path, const Json& body, std::optional<double> keep_alive) {
  if (keep_alive != 0.0) return false;
  if (path == "/api/chat") return lacks(body, "messages");
  if (path == "/api/embed") return lacks(body, "input");
  return lacks(body, "prompt") && lacks(body, "suffix");
}

void answer_unloaded(const Call& call, const std::string& id) {
  const std::string& path = call.request.path;
  const std::string name = listed_name(id);
  if (path == "/api/embeddings") return call.reply->send({.body = Object().set("embedding", Json::array()).dump()});
  if (path == "/api/embed") return call.reply->send({.body = Object().set("model", name).set("embeddings", Json::array()).dump()});
  call.reply->send(loaded_response(path == "/api/chat" ? Form::chat : Form::generate, name, true));
}

}  // namespace server::ollama

// The endpoints of Ollama's API, /api/... A name of the model with and without ":latest" means the same. Errors are
// {"error": "..."}.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apis/api.hpp"

namespace server::ollama {

void chat(const Api& api, const Call& call);
void generate(const Api& api, const Call& call);
void embed(const Api& api, const Call& call);
void embeddings(const Api& api, const Call& call);  // the older form of embed: one text
void tags(const Models& models, const Call& call);
void show(const Models& models, const Call& call);
void ps(const Models& models, const Call& call);
void version(const Models& models, const Call& call);

// Returns whether a request of this path has no prompt and a keep_alive of 0, by which it asks to unload its model.
[[nodiscard]] bool asks_to_unload(std::string_view path, const tessera::Json& body, std::optional<double> keep_alive);
// Answers a request to unload a model that is not loaded.
void answer_unloaded(const Call& call, const std::string& id);

}  // namespace server::ollama

// The endpoints of Ollama's API, /api/... A model's name means the same with and without ":latest". Errors are {"error": "..."}.
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

// Returns whether a request asks to unload its model: its keep_alive is 0, and it has no prompt (`path` says which field is the prompt).
[[nodiscard]] bool asks_to_unload(std::string_view path, const tessera::Json& body, std::optional<double> keep_alive);
// Answers a request to unload a model that is not loaded.
void answer_unloaded(const Call& call, const std::string& id);

}  // namespace server::ollama

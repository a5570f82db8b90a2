// The endpoints of Ollama's API, /api/... A name of the model with and without ":latest" means the same. Errors are
// {"error": "..."}.
#pragma once

#include "api.hpp"

namespace server::ollama {

void chat(const Api& api, const Call& call);
void generate(const Api& api, const Call& call);
void embed(const Api& api, const Call& call);
void embeddings(const Api& api, const Call& call);  // the older form of embed: one text
void tags(const Api& api, const Call& call);
void show(const Api& api, const Call& call);
void ps(const Api& api, const Call& call);
void version(const Api& api, const Call& call);

}  // namespace server::ollama

// Reads the field `lora` of a request (as in llama.cpp), and loads the adapters that a request names. Has the endpoints that list, load and
// unload adapters. A request can also name an adapter in place of a model (as in vLLM); for this name see AdapterNames::find().
#pragma once

#include <string_view>
#include <vector>

#include <tessera/adapter.hpp>
#include <tessera/json/json.hpp>

#include "adapters/adapter_names.hpp"
#include "adapters/adapter_shelf.hpp"
#include "apis/api.hpp"

namespace server {

// Reads the field `lora` of a request and removes it from the body. The field is a list of {"id": a number of GET /lora-adapters, or a name,
// "scale": number}. Errors: ApiError that names the field: 404 if there is no such adapter; 400 for any other fault, for example an adapter
// of another model than `model`.
[[nodiscard]] std::vector<NamedAdapter> take_lora_field(tessera::Json& body, const AdapterNames& names, std::size_t model);
// Loads the adapters, except those with scale 0, and returns them. Errors: those of AdapterShelf::take().
[[nodiscard]] std::vector<tessera::AdapterUse> load_adapters(const std::vector<NamedAdapter>& named, AdapterShelf& shelf);

// GET /lora-adapters, llama.cpp's.
void list_adapters(const Models& models, const Call& call);
// POST /v1/load_lora_adapter and /v1/unload_lora_adapter, vLLM's.
void load_adapter(const Models& models, const Call& call);
void unload_adapter(const Models& models, const Call& call);

}  // namespace server

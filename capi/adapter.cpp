// tessera_adapter: loading an adapter, its properties, and the sessions and conversations that use it.
#include "adapter.hpp"

#include <cmath>
#include <memory>
#include <string>

#include <tessera/extend/files/model_file.hpp>

#include "engine.hpp"
#include "host.hpp"
#include "paths.hpp"
#include "session.hpp"
#include "text/chat.hpp"
#include "values/describe.hpp"
#include "values/structs.hpp"
#include "values/values.hpp"

namespace tessera::c {

std::vector<AdapterUse> read_adapters(const tessera_adapter_list* given, std::string_view name) {
  const auto lists = read_struct(given, name);
  const std::string in = std::string(name) + ".";
  const auto adapters = list(lists.adapters, lists.count, in + "adapters");
  std::vector<AdapterUse> uses;
  uses.reserve(adapters.size());
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    const std::string at = "[" + std::to_string(i) + "]";
    AdapterUse& use = uses.emplace_back();
    use.adapter = need(adapters[i], in + "adapters" + at).adapter;
    if (lists.scales != nullptr) use.scale = lists.scales[i];
    if (!std::isfinite(use.scale)) fail(ErrorCode::invalid_argument, "is no number", in + "scales" + at);
    if (lists.from != nullptr && lists.from[i] != TESSERA_FROM_DEFAULT) use.from = lists.from[i];
  }
  return uses;
}

}  // namespace tessera::c

using namespace tessera::c;

int32_t tessera_adapter_load(const tessera_engine* engine, const char* path, size_t path_size,
                             const tessera_adapter_options* options, tessera_adapter** adapter, tessera_error** error) {
  return call(error, [&] {
    clear(adapter);
    const auto given = read_struct(options, "options");
    const auto from = read_struct(given.base, "options.base");
    const SharedDrop drop = share({from.user, from.drop});
    tessera_adapter*& made = out(adapter, "adapter");
    const tessera::Engine& of = need(engine, "engine").state->engine;
    tessera::ModelFile base;
    if (given.base != nullptr) base = must(tessera::ModelFile::from_source(host_source(from, drop)));
    tessera::AdapterOptions how;
    how.base = given.base != nullptr ? &base : nullptr;
    how.stop = token_of(given.stop);
    made = new tessera_adapter(must(of.adapter(path_of(path, path_size, "path"), how)));
  });
}

const char* tessera_adapter_name(const tessera_adapter* adapter) {
  return is_a(adapter) != nullptr ? adapter->name.c_str() : nullptr;
}
const char* tessera_adapter_base_name(const tessera_adapter* adapter) {
  return is_a(adapter) != nullptr ? adapter->base.c_str() : nullptr;
}
uint64_t tessera_adapter_bytes(const tessera_adapter* adapter) {
  return is_a(adapter) != nullptr ? adapter->adapter.bytes() : 0;
}
uint32_t tessera_adapter_rank(const tessera_adapter* adapter) {
  return is_a(adapter) != nullptr ? adapter->adapter.rank() : 0;
}

int32_t tessera_adapter_invocation(const tessera_adapter* adapter, const int32_t** tokens, size_t* count,
                                   tessera_error** error) {
  return call(error, [&] {
    clear(count);
    const int32_t*& at = out(tokens, "tokens");
    size_t& n = out(count, "count");
    const std::span<const tessera::Token> all = need(adapter, "adapter").adapter.invocation();
    if (all.empty()) return;
    at = all.data();
    n = all.size();
  });
}

int32_t tessera_adapter_info(const tessera_adapter* adapter, tessera_text** json, tessera_error** error) {
  return call(error, [&] {
    tessera_text*& made = out(json, "json");
    made = new_text(describe(need(adapter, "adapter").adapter).dump());
  });
}

void tessera_adapter_free(tessera_adapter* adapter) { free_handle(adapter); }

int32_t tessera_session_use_adapters(tessera_session* session, const tessera_adapter_list* adapters,
                                     tessera_error** error) {
  return call(error, [&] {
    const auto uses = read_adapters(adapters, "adapters");
    must(need(session, "session").state->change().use_adapters(uses));
  });
}

int32_t tessera_conversation_use_adapters(tessera_conversation* conversation, const tessera_adapter_list* adapters,
                                          tessera_error** error) {
  return call(error, [&] {
    const auto uses = read_adapters(adapters, "adapters");
    must(need(conversation, "conversation").state->change().use_adapters(uses));
  });
}

// The library's versions, and the handles that hold plain values: texts, tokens, stops.
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include <tessera/version.hpp>

#include "values/values.hpp"

namespace tessera::c {

tessera_text* new_text(std::string text) { return new tessera_text(std::move(text)); }

tessera_tokens* new_tokens(std::span<const std::int32_t> tokens) {
  return new tessera_tokens({tokens.begin(), tokens.end()});
}

std::stop_token token_of(const tessera_stop* stop) {
  const tessera_stop* given = need_or_null(stop, "stop");
  return given != nullptr ? given->source.get_token() : std::stop_token();
}

}  // namespace tessera::c

using namespace tessera::c;

const char* tessera_version() { return tessera::version().data(); }
int32_t tessera_abi_version() { return TESSERA_ABI_VERSION; }
int32_t tessera_api_version() { return TESSERA_API_VERSION; }

int32_t tessera_check_version(int32_t abi_version, int32_t api_version, tessera_error** error) {
  return call(error, [&] {
    if (abi_version == TESSERA_ABI_VERSION && api_version >= 1 && api_version <= TESSERA_API_VERSION) return;
    fail(tessera::ErrorCode::unsupported,
         "the program needs ABI " + std::to_string(abi_version) + ", API " + std::to_string(api_version) +
             ", and this library has ABI " + std::to_string(TESSERA_ABI_VERSION) + ", API " +
             std::to_string(TESSERA_API_VERSION) + "; use a " +
             (abi_version > TESSERA_ABI_VERSION || api_version > TESSERA_API_VERSION ? "newer" : "fitting") +
             " library",
         "tessera " + std::string(tessera::version()));
  });
}

void tessera_options_init(void* options, size_t size) {
  if (options == nullptr || size < sizeof size) return;
  std::memset(options, 0, size);
  std::memcpy(options, &size, sizeof size);
}

const char* tessera_text_data(const tessera_text* text) { return is_a(text) != nullptr ? text->text.c_str() : nullptr; }
size_t tessera_text_size(const tessera_text* text) { return is_a(text) != nullptr ? text->text.size() : 0; }
void tessera_text_free(tessera_text* text) { free_handle(text); }

const int32_t* tessera_tokens_data(const tessera_tokens* tokens) {
  return is_a(tokens) != nullptr ? tokens->tokens.data() : nullptr;
}
size_t tessera_tokens_count(const tessera_tokens* tokens) {
  return is_a(tokens) != nullptr ? tokens->tokens.size() : 0;
}
void tessera_tokens_free(tessera_tokens* tokens) { free_handle(tokens); }

int32_t tessera_stop_create(tessera_stop** stop, tessera_error** error) {
  return call(error, [&] {
    tessera_stop*& made = out(stop, "stop");
    made = new tessera_stop;
  });
}
void tessera_stop_request(tessera_stop* stop) {
  if (is_a(stop) != nullptr) stop->source.request_stop();
}
void tessera_stop_free(tessera_stop* stop) { free_handle(stop); }

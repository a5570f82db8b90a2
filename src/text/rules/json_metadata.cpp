#include "text/rules/json_metadata.hpp"

#include <algorithm>

#include "core/guard.hpp"

namespace tessera::detail {
namespace {

bool has(const std::vector<std::uint32_t>& ids, std::uint32_t id) { return std::ranges::find(ids, id) != ids.end(); }

std::uint32_t single(const std::vector<std::uint32_t>& ids) { return ids.size() == 1 ? ids.front() : kNoToken; }

}  // namespace

Result<TokenizerMetadata> metadata_of(const TokenizerJson& json, Pipeline& pipeline, const Settings& settings, const std::stop_token& stop) {
  TokenizerMetadata m;
  m.rules.model = pipeline.model();
  m.tokens = json.tokens.values();
  m.types = ValueList(json.types);
  m.decoder = &pipeline.decoder();
  m.outside = json.outside;
  m.unknown = json.unknown;
  const std::uint32_t tokens = json.size();
  TESSERA_TRY(m.bos, read_token_id(settings, Setting::bos_token, tokens, single(pipeline.front())));
  TESSERA_TRY(m.eos, read_token_id(settings, Setting::eos_token, tokens, single(pipeline.back())));
  TESSERA_TRY(m.end_of_turn, read_token_id(settings, Setting::end_of_turn_token, tokens));
  TESSERA_TRY(m.end_of_message, read_token_id(settings, Setting::end_of_message_token, tokens));
  TESSERA_TRY(m.suppressed, read_token_list(settings, Setting::suppressed_tokens, tokens, stop));
  TESSERA_TRY(m.ends, read_token_list(settings, Setting::end_tokens, tokens, stop));
  if (m.bos != kNoToken && settings.has(Setting::add_bos)) {
    TESSERA_TRY(const bool adds, settings.boolean(Setting::add_bos));
    pipeline.set_bos(m.bos, adds);
  }
  if (m.eos != kNoToken && settings.has(Setting::add_eos)) {
    TESSERA_TRY(const bool adds, settings.boolean(Setting::add_eos));
    pipeline.set_eos(m.eos, adds);
  }
  m.rules.add_bos = m.bos != kNoToken && has(pipeline.front(), m.bos);
  m.rules.add_eos = m.eos != kNoToken && has(pipeline.back(), m.eos);
  return m;
}

}  // namespace tessera::detail

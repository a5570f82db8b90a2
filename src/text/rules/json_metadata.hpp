// Turns the rules of a tokenizer.json into metadata, from which a Vocabulary is made as from the metadata of a GGUF file.
#pragma once

#include <stop_token>

#include "text/pipeline/pipeline.hpp"
#include "text/rules/json/tokenizer_json.hpp"
#include "text/tokenizer_metadata.hpp"

namespace tessera::detail {

// Returns the metadata: views into `json`, `pipeline` and `settings`. BOS and EOS come from the settings. If the settings have no BOS, and
// the frame has exactly one token before the text, that token is BOS. If the settings have no EOS, and the frame has exactly one token
// after the text, that token is EOS. The settings add_bos and add_eos, if present, change the pipeline's frame. Errors: those of
// Tokenizer::from_settings().
[[nodiscard]] Result<TokenizerMetadata> metadata_of(const TokenizerJson& json, Pipeline& pipeline, const Settings& settings,
                                                    const std::stop_token& stop);

}  // namespace tessera::detail

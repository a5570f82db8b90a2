// The metadata of a tokenizer whose rules are a tokenizer.json, so that it makes a Vocabulary as that of a GGUF file does.
#pragma once

#include <stop_token>

#include "text/pipeline/pipeline.hpp"
#include "text/rules/json/tokenizer_json.hpp"
#include "text/tokenizer_metadata.hpp"

namespace tessera::detail {

// Returns the metadata: views into `json`, `pipeline` and `settings`. BOS and EOS come from the settings; if these have none, they are the
// single tokens of the frame. The settings add_bos and add_eos, if there are any, change the pipeline's frame. Errors: as of
// Tokenizer::from_settings().
[[nodiscard]] Result<TokenizerMetadata> metadata_of(const TokenizerJson& json, Pipeline& pipeline, const Settings& settings,
                                                    const std::stop_token& stop);

}  // namespace tessera::detail

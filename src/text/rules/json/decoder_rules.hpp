// The decoder of a tokenizer.json.
#pragma once

#include "text/pipeline/decoder.hpp"
#include "text/rules/json/rule_reader.hpp"

namespace tessera::detail {

// Returns the decoder that the value of "decoder" describes. If the value is null, the decoder joins tokens with spaces. Errors: unsupported,
// tessera does not have a rule, or a rule needs the whole text (a stream gives text before its end); corrupt_file. Both errors name the place
// in the file.
[[nodiscard]] Result<Decoder> read_decoder(const Json& json);

}  // namespace tessera::detail

// The decoder of a tokenizer.json.
#pragma once

#include "text/pipeline/decoder.hpp"
#include "text/rules/json/rule_reader.hpp"

namespace tessera::detail {

// Returns the steps that the value of "decoder" states; if it is null, tokens are put together with spaces between. Errors: unsupported, a
// rule that tessera does not have, or one that needs the whole text (a stream gives text before its end); corrupt_file. Both name the
// place.
[[nodiscard]] Result<Decoder> read_decoder(const Json& json);

}  // namespace tessera::detail

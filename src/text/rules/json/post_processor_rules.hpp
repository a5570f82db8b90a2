// The post-processor of a tokenizer.json: tokens that are put before and after every text.
#pragma once

#include <cstdint>
#include <vector>

#include "text/rules/json/rule_reader.hpp"

namespace tessera::detail {

struct Frame {
  std::vector<std::int64_t> front, back;  // ids as the file has them, unchecked
  // Tokens before, between and after two texts; empty if the file has no usable template of two texts.
  std::vector<std::int64_t> pair_front, pair_between, pair_back;
  bool has_segments = false;  // the second text is of another segment than the first text
};

// Returns the tokens that the value of "post_processor" puts around one text and around two texts. Rules that only change offsets
// (ByteLevel) add no tokens. Errors: unsupported, a rule that tessera does not have; corrupt_file. Both errors name the place.
[[nodiscard]] Result<Frame> read_frame(const Json& json);

}  // namespace tessera::detail

// The post-processor of a tokenizer.json: tokens that stand in front of and behind every text.
#pragma once

#include <cstdint>
#include <vector>

#include "text/rules/json/rule_reader.hpp"

namespace tessera::detail {

struct Frame {
  std::vector<std::int64_t> front, back;  // ids as the file has them, unchecked
  // The same of two texts; empty if the file does not say.
  std::vector<std::int64_t> pair_front, pair_between, pair_back;
  bool has_segments = false;  // the second text is of another segment than the first
};

// Returns the tokens that the value of "post_processor" puts around one text and around two. Rules that change offsets only (ByteLevel) add none. Errors:
// unsupported, a rule that tessera does not have; corrupt_file. Both name the place.
[[nodiscard]] Result<Frame> read_frame(const Json& json);

}  // namespace tessera::detail

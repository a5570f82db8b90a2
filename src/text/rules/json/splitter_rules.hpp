// The pre-tokenizer of a tokenizer.json.
#pragma once

#include "text/pipeline/splitter.hpp"
#include "text/rules/json/rule_reader.hpp"

namespace tessera::detail {

// Returns the steps that the value of "pre_tokenizer" states; none if the value is null. Errors: unsupported, a rule that tessera does not
// have; corrupt_file. Both errors name the place.
[[nodiscard]] Result<Splitter> read_splitter(const Json& json);

// The rule "Metaspace", which is a pre-tokenizer and a decoder, in its old and its new spelling.
struct MetaspaceRule {
  std::string mark;
  PrependScheme scheme;
  bool splits;
};
[[nodiscard]] Result<MetaspaceRule> read_metaspace(const RuleReader& rule);

}  // namespace tessera::detail

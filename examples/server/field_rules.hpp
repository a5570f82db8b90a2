// The table of every field of a request, by API, and what becomes of the field. A body is sifted by it before anything is read.
#pragma once

#include <span>
#include <string_view>

#include <tessera/json/json.hpp>

#include "notes.hpp"

namespace server {

// Bits, so that a rule can hold for several.
enum Endpoint : unsigned {
  kChat = 1, kCompletions = 2, kResponses = 4, kMessages = 8, kCountTokens = 16, kEmbeddings = 32, kTokenize = 64, kDetokenize = 128, kTemplate = 256,
  kOllamaChat = 512, kOllamaGenerate = 1024, kOllamaEmbed = 2048, kOllamaShow = 4096
};

enum class Fate {
  read,     // the endpoint reads the field
  ignored,  // accepted without effect, which the answer's header says; `words` say why
  refused   // an error of status 400; `words` say what to do
};

struct FieldRule {
  unsigned endpoints;
  std::string_view where;     // the object: "" is the body, "tools[]" each element of the list "tools"
  std::string_view names;     // separated by blanks; "*" stands for every name without a rule of its own
  Fate fate;
  std::string_view words{};
  std::string_view harmless{};  // refused: JSON values, separated by '|', with which the field asks for nothing
};

// Fields that say how tokens are drawn and for whom, by the names that every API has them under, separated by blanks.
inline constexpr std::string_view kDrawingFields =
    "temperature top_p top_k min_p typical_p top_n_sigma repetition_penalty repeat_penalty frequency_penalty presence_penalty repeat_last_n penalize_prompt "
    "logit_bias seed priority deadline_ms ignore_eos stop_token_ids dry_multiplier dry_base dry_allowed_length dry_penalty_last_n "
    "dry_sequence_breakers xtc_probability xtc_threshold mirostat mirostat_tau mirostat_eta dynatemp_range dynatemp_exponent";

[[nodiscard]] std::span<const FieldRule> field_rules();

// Removes from the body what is not read, null included, and notes it. A field that no rule names is ignored. Exception: a name
// without a rule that says it constrains the answer ("guided_...", "...schema") is refused, so that nobody takes free text for a held one.
// Errors: ApiError of status 400 that names the field.
void sift(tessera::Json& body, Endpoint endpoint, Notes& notes);

}  // namespace server

// The table of all fields of requests, by API, and how each is treated. A body is sifted by the table before any field is read.
#pragma once

#include <span>
#include <string_view>

#include <tessera/json/json.hpp>

#include "notes.hpp"

namespace server {

// Bits, so that a rule can hold for several endpoints.
enum Endpoint : unsigned {
  kChat = 1, kCompletions = 2, kResponses = 4, kMessages = 8, kCountTokens = 16, kEmbeddings = 32, kTokenize = 64, kDetokenize = 128, kTemplate = 256,
  kOllamaChat = 512, kOllamaGenerate = 1024, kOllamaEmbed = 2048, kOllamaShow = 4096, kRerank = 8192, kScore = 16384
};
inline constexpr std::size_t kEndpoints = 15;  // the number of endpoints above
static_assert(kScore == 1u << (kEndpoints - 1));

enum class Fate {
  read,     // the endpoint reads the field
  ignored,  // accepted without effect, and named in a header of the answer; `words` say why
  refused   // an error of status 400; `words` say what to do
};

struct FieldRule {
  unsigned endpoints;
  std::string_view where;     // the object of the field: "" is the body, "tools[]" each element of the list "tools"
  std::string_view names;     // separated by blanks; "*" stands for every name without a rule of its own
  Fate fate;
  std::string_view words{};
  std::string_view harmless{};  // for `refused`: values that change nothing, so the field is accepted with them. JSON, separated by '|'
};

// The names of the sampling parameters and scheduling fields that are the same on every API, separated by blanks.
inline constexpr std::string_view kDrawingFields =
    "temperature top_p top_k min_p typical_p top_n_sigma repetition_penalty repeat_penalty frequency_penalty presence_penalty repeat_last_n penalize_prompt "
    "logit_bias seed priority deadline_ms ignore_eos stop_token_ids dry_multiplier dry_base dry_allowed_length dry_penalty_last_n "
    "dry_sequence_breakers xtc_probability xtc_threshold mirostat mirostat_tau mirostat_eta dynatemp_range dynatemp_exponent";

[[nodiscard]] std::span<const FieldRule> field_rules();

// Removes from the body everything that the endpoint does not read. Null fields are removed. For any other field its rule decides (Fate).
// read: the field stays. ignored: it is removed and noted. refused: throws, but if the value is one that changes nothing, the field is
// only removed. A field without a rule is ignored. Exception: if the name of a field without a rule suggests that it constrains the answer
// ("guided_...", "...schema"), the field is refused, so that no client takes free text for a constrained answer. Errors: ApiError of
// status 400 that names the field.
void sift(tessera::Json& body, Endpoint endpoint, Notes& notes);

}  // namespace server

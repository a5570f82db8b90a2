#include "fields/field_rules.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include <fmt/format.h>

#include "api_error.hpp"

namespace server {

using tessera::Json;

namespace {

constexpr unsigned kChatLike = kChat | kTokenize | kTemplate;  // endpoints that read the fields of OpenAI's chat
constexpr unsigned kMessagesLike = kMessages | kCountTokens;
constexpr unsigned kOllamaAnswers = kOllamaChat | kOllamaGenerate;
constexpr unsigned kOllama = kOllamaAnswers | kOllamaEmbed | kOllamaShow;
constexpr unsigned kAnswers = kChat | kCompletions | kResponses | kMessages | kOllamaAnswers;
constexpr unsigned kAll = 2 * kScore - 1;

constexpr std::string_view kTracks = "it tracks or labels the request";
constexpr std::string_view kCaches = "it hints at caching, which is done anyway";
constexpr std::string_view kService = "it is for hosted services, and this server is none";
constexpr std::string_view kShown = "it concerns things that a hosted service adds to texts";
constexpr std::string_view kHeld = "arguments always follow the schema";
constexpr std::string_view kLoaded = "every tool is told to the model at once";

constexpr FieldRule kRules[] = {
    {kOllama, "", "keep_alive", Fate::read},  // must be first, because the first rule for a name counts; 0 unloads the model
    // --- All endpoints, or all endpoints that answer.
    {kAll, "", "model", Fate::read},
    {kAnswers, "", kDrawingFields, Fate::read},
    {kAnswers, "", "stop_in_reasoning", Fate::read},
    {kAnswers, "", "stream return_progress", Fate::read},
    {kChat | kCompletions, "", "kv_transfer_params", Fate::read},
    {kAll, "", "kv_transfer_params", Fate::ignored, "prompts move between servers in OpenAI's chat and completions only"},
    {kAll, "", "cache_hit_threshold", Fate::ignored, "this server computes the rest of a prompt, however little of it is cached"},
    {kAll, "", "user metadata request_id", Fate::ignored, kTracks},
    {kAll, "", "cache_prompt prompt_cache_key prompt_cache_retention prompt_cache_options cache_control id_slot n_keep keep_alive", Fate::ignored, kCaches},
    {kAll, "", "service_tier safety_identifier client_metadata betas anthropic_beta anthropic_version inference_geo container provider", Fate::ignored, kService},
    {kAll, "", "timings_per_token return_progress return_tokens_as_token_ids", Fate::ignored, "it asks for figures beside the answer"},
    {kAnswers, "", "min_tokens", Fate::refused, "min_tokens is not supported: leave it out, or set ignore_eos and max_tokens.", "0"},
    {kAnswers, "", "bad_words", Fate::refused, "bad_words is not supported: ban tokens by logit_bias, with -100.", "[]"},
    {kAnswers, "", "allowed_token_ids", Fate::refused, "allowed_token_ids is not supported: choose texts by guided_choice or guided_regex.", "[]"},
    {kAnswers, "", "n_probs", Fate::refused, "n_probs is not supported: send logprobs, and top_logprobs in a chat.", "0"},
    {kAnswers, "", "prompt_logprobs", Fate::refused, "prompt_logprobs is not supported: send echo and logprobs to /v1/completions.", "0|false"},
    {kAnswers, "", "use_beam_search", Fate::refused, "Beam search is not supported here: leave use_beam_search out, or set it to false.", "false"},
    {kAnswers, "", "length_penalty", Fate::refused, "length_penalty belongs to beam search, which is not supported here: leave it out.", "1|1.0"},
    {kAnswers, "", "truncate_prompt_tokens", Fate::refused, "truncate_prompt_tokens is not supported: send a prompt that fits.", "-1"},
    {kAnswers, "", "samplers logits_processors vllm_xargs", Fate::refused, "This is not supported here: leave it out.", "[]|{}"},
    {kAnswers, "", "skip_special_tokens", Fate::refused, "Control tokens are never in the text: leave skip_special_tokens out, or set it to true.", "true"},
    {kAnswers, "", "include_stop_str_in_output", Fate::refused, "A stop string is never in the answer: leave this out, or set it to false.", "false"},
    {kAnswers, "", "spaces_between_special_tokens add_special_tokens", Fate::ignored, "the model's tokenizer decides this"},

    // --- The form of the answer.
    {kChatLike | kAnswers, "",
     "guided_json guided_regex guided_choice guided_grammar grammar json_schema structured_outputs", Fate::read},
    {kChatLike | kAnswers, "structured_outputs", "json regex choice grammar json_object", Fate::read},
    {kAll, "structured_outputs", "disable_fallback disable_any_whitespace disable_additional_properties", Fate::ignored,
     "a schema is held always, with a blank at most between its parts, and an object has the properties that it lists"},
    {kAll, "structured_outputs", "structural_tag whitespace_pattern", Fate::refused, "This is not supported: send json, regex, choice or grammar."},

    // --- OpenAI's chat; /apply-template and /tokenize read the same messages.
    {kChatLike, "",
     "messages tools tool_choice parallel_tool_calls response_format reasoning_effort thinking_token_budget chat_template_kwargs "
     "continue_final_message add_generation_prompt",
     Fate::read},
    {kChat, "", "max_completion_tokens max_tokens n_predict n stop logprobs top_logprobs stream_options truncation", Fate::read},
    {kChatLike, "messages[]", "role content name tool_call_id reasoning_content reasoning tool_calls", Fate::read},
    {kChatLike, "messages[]", "refusal annotations prompt_cache_breakpoint cache_control", Fate::ignored, "it labels a message"},
    {kChatLike, "messages[]", "audio", Fate::refused, "This model reads text alone: it takes no sounds."},
    {kChatLike, "messages[]", "function_call", Fate::refused, "function_call is the old form: send tool_calls, and the result with role tool."},
    {kChatLike, "messages[]", "*", Fate::read},  // for the template
    {kChatLike, "messages[].tool_calls[]", "id type function custom", Fate::read},
    {kChatLike, "messages[].tool_calls[]", "index extra_content", Fate::ignored, "it belongs to a stream, or to a hosted service"},
    {kChatLike, "messages[].content[]", "type text refusal", Fate::read},
    {kChatLike, "messages[].content[]", "annotations cache_control citations logprobs prompt_cache_breakpoint", Fate::ignored, kShown},
    {kChatLike, "response_format", "type json_schema schema", Fate::read},
    {kChatLike, "response_format.json_schema", "name description strict schema", Fate::read},
    {kChat, "stream_options", "include_usage continuous_usage_stats", Fate::read},
    {kChat | kCompletions, "stream_options", "include_obfuscation", Fate::ignored, "pieces are not padded"},
    {kCompletions, "stream_options", "continuous_usage_stats", Fate::ignored, "usage comes at the end"},
    {kChat, "", "store", Fate::ignored, "this server stores no answers"},
    {kChat, "", "prediction", Fate::ignored, "it hints at the answer; the model writes the same without it"},
    {kChat, "", "verbosity", Fate::ignored, "only models that were trained with it use it"},
    {kChat, "", "web_search_options", Fate::ignored, kService},
    {kChat, "", "modalities", Fate::refused, "The answer is text: leave modalities out, or set it to [\"text\"].", R"(["text"])"},
    {kChat, "", "audio", Fate::refused, "The answer is text: leave audio out."},
    {kChat, "", "functions function_call", Fate::refused, "This is the old form: send tools and tool_choice.", "[]"},
    {kChat, "", "echo", Fate::refused, "echo belongs to /v1/completions: leave it out, or set it to false.", "false"},
    {kChat, "", "chat_template", Fate::refused, "A request cannot bring a template: start the server with --template."},
    {kChat, "", "documents mm_processor_kwargs", Fate::refused, "This is not supported: put documents into the messages.", "[]|{}"},

    // --- OpenAI's completions.
    {kCompletions, "", "prompt max_tokens n_predict n best_of stop logprobs echo stream_options suffix", Fate::read},
    {kCompletions, "stream_options", "include_usage", Fate::read},
    {kCompletions, "", "store", Fate::ignored, "this server stores no answers"},
    {kCompletions, "", "response_format", Fate::read},
    {kCompletions, "response_format", "type json_schema schema", Fate::read},
    {kCompletions, "response_format.json_schema", "name description strict schema", Fate::read},

    // --- OpenAI's Responses.
    {kResponses, "", "input instructions tools tool_choice parallel_tool_calls text reasoning max_output_tokens include top_logprobs truncation stream_options", Fate::read},
    {kResponses, "", "store", Fate::ignored, "this server stores no responses"},
    {kResponses, "", "max_tool_calls", Fate::ignored, "it counts calls of a service's tools"},
    {kResponses, "", "previous_response_id", Fate::refused, "This server stores no responses: send the items of the conversation as input."},
    {kResponses, "", "conversation", Fate::refused, "This server stores no conversations: send their items as input."},
    {kResponses, "", "prompt", Fate::refused, "This server stores no prompts: send instructions and input."},
    {kResponses, "", "background", Fate::refused, "An answer comes with its request: leave background out, or set it to false.", "false"},
    {kResponses, "", "context_management", Fate::refused, "This server does not edit the conversation: leave context_management out.", "[]|{}|{\"edits\":[]}"},
    {kResponses, "stream_options", "include_obfuscation", Fate::ignored, kService},
    {kResponses, "reasoning", "effort", Fate::read},
    {kResponses, "reasoning", "summary generate_summary context", Fate::ignored, "reasoning is shown as it is"},
    {kResponses, "text", "format", Fate::read},
    {kResponses, "text", "verbosity", Fate::read},  // repeated in the answer
    {kResponses, "text.format", "type name description strict schema", Fate::read},
    {kResponses, "tools[]", "type name description parameters format tools", Fate::read},
    {kResponses, "tools[]", "strict", Fate::read},  // repeated in the answer
    {kResponses, "tools[]", "defer_loading", Fate::ignored, kLoaded},
    {kResponses, "tools[].tools[]", "type name description parameters format", Fate::read},
    {kResponses, "tools[].tools[]", "strict", Fate::ignored, kHeld},
    {kResponses, "tools[].tools[]", "defer_loading", Fate::ignored, kLoaded},
    {kResponses, "tools[].tools[].format", "type syntax definition", Fate::read},
    {kResponses, "tools[].format", "type syntax definition", Fate::read},
    {kResponses, "tools[]", "*", Fate::ignored, "it belongs to a tool of a hosted service, which is left out"},
    {kResponses, "input[]", "type role content call_id name namespace arguments input output summary id tools", Fate::read},
    {kResponses, "input[]", "status phase encrypted_content internal_chat_message_metadata_passthrough", Fate::ignored, kTracks},
    {kResponses, "input[]", "*", Fate::ignored, "it belongs to an item of a hosted service"},
    {kResponses, "input[].content[]", "type text refusal", Fate::read},
    {kResponses, "input[].output[]", "type text refusal", Fate::read},
    {kResponses, "input[].summary[]", "type text", Fate::read},
    {kResponses, "input[].content[]", "annotations logprobs cache_control citations prompt_cache_breakpoint", Fate::ignored, kShown},
    {kResponses, "input[].output[]", "annotations logprobs", Fate::ignored, kShown},

    // --- Anthropic's Messages.
    {kMessagesLike, "", "truncation messages system tools tool_choice thinking output_config output_format", Fate::read},
    {kMessages, "", "max_tokens stop_sequences", Fate::read},
    {kCountTokens, "", "max_tokens stop_sequences temperature top_p top_k stream", Fate::ignored, "it does not change the count"},
    {kMessagesLike, "", "mcp_servers", Fate::ignored, "this server connects to no other"},
    {kMessagesLike, "", "speed", Fate::ignored, kService},
    {kMessagesLike, "", "context_management", Fate::refused, "This server does not edit the conversation: leave context_management out, or send it without edits.",
     R"({}|{"edits":[]}|{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}|{"edits":[{"keep":"all","type":"clear_thinking_20251015"}]})"},
    {kMessagesLike, "system[]", "type text", Fate::read},
    {kMessagesLike, "system[]", "cache_control citations", Fate::ignored, kCaches},
    {kMessagesLike, "messages[]", "role content", Fate::read},
    {kMessagesLike, "messages[]", "id type stop_reason stop_sequence usage", Fate::ignored, "it describes the answer that this message once was"},
    {kMessagesLike, "messages[].content[]", "type text thinking id name input tool_use_id content is_error source title context", Fate::read},
    {kMessagesLike, "messages[].content[]", "cache_control", Fate::ignored, kCaches},
    {kMessagesLike, "messages[].content[]", "citations", Fate::ignored, kShown},
    {kMessagesLike, "messages[].content[]", "signature data", Fate::ignored, "reasoning is read as it stands"},
    {kMessagesLike, "messages[].content[]", "caller", Fate::ignored, kTracks},
    {kMessagesLike, "messages[].content[].content[]", "type text source title tool_name", Fate::read},
    {kMessagesLike, "messages[].content[].content[]", "cache_control", Fate::ignored, kCaches},
    {kMessagesLike, "messages[].content[].content[]", "citations", Fate::ignored, kShown},
    {kMessagesLike, "tools[]", "type name description input_schema", Fate::read},
    {kMessagesLike, "tools[]", "cache_control", Fate::ignored, kCaches},
    {kMessagesLike, "tools[]", "defer_loading", Fate::ignored, kLoaded},
    {kMessagesLike, "tools[]", "strict eager_input_streaming", Fate::ignored, kHeld},
    {kMessagesLike, "tools[]", "input_examples allowed_callers", Fate::ignored, kService},
    {kMessagesLike, "tools[]", "*", Fate::ignored, "it belongs to a tool of a hosted service, which is left out"},
    {kMessagesLike, "tool_choice", "type name disable_parallel_tool_use", Fate::read},
    {kMessagesLike, "thinking", "type budget_tokens display", Fate::read},
    {kMessagesLike, "output_config", "effort format", Fate::read},
    {kMessagesLike, "output_config", "task_budget", Fate::ignored, kService},
    {kMessagesLike, "output_config.format", "type name description strict schema", Fate::read},
    {kMessagesLike, "output_format", "type name description strict schema", Fate::read},

    // --- Ollama's.
    {kOllama, "", "name", Fate::read},  // the model's name, from older clients
    {kOllamaAnswers | kOllamaEmbed, "", "options truncate", Fate::read},
    {kOllamaAnswers, "", "format think logprobs top_logprobs stop num_predict num_ctx", Fate::read},
    {kOllamaAnswers, "", "shift", Fate::refused, "An answer ends where the context is full: leave shift out, or set it to false.", "false"},
    {kOllamaAnswers, "", "_debug_render_only", Fate::refused, "Send the messages to /apply-template.", "false"},
    {kOllamaAnswers, "options", kDrawingFields, Fate::read},
    {kOllamaAnswers, "options", "stop num_predict num_ctx", Fate::read},
    {kOllamaAnswers | kOllamaEmbed, "options",
     "num_batch num_gpu main_gpu num_thread use_mmap use_mlock numa low_vram f16_kv vocab_only logits_all embedding_only", Fate::ignored,
     "it says how a model is loaded, but this model is loaded already"},
    {kOllamaAnswers, "options", "num_keep", Fate::ignored, "nothing is shifted out of the context while an answer is written"},
    {kOllamaAnswers, "options", "penalize_newline", Fate::refused, "A newline is penalised as any other token: leave penalize_newline out, or set it to true.", "true"},
    {kOllamaAnswers, "options", "tfs_z", Fate::refused, "Tail-free sampling is not supported: leave tfs_z out, or set it to 1.", "1|1.0"},
    {kOllamaAnswers, "options", "rope_frequency_base rope_frequency_scale", Fate::refused, "The model's file decides this: leave it out, or set it to 0.", "0|0.0"},
    {kOllamaChat, "", "messages tools tool_choice parallel_tool_calls", Fate::read},
    {kOllamaChat, "messages[]", "role content thinking tool_calls tool_name tool_call_id", Fate::read},
    {kOllamaChat, "messages[]", "images", Fate::refused, "This model reads only text: it takes no pictures.", "[]"},
    {kOllamaChat, "messages[].content[]", "type text refusal", Fate::read},
    {kOllamaChat, "messages[].tool_calls[]", "id type function", Fate::read},
    {kOllamaGenerate, "", "prompt suffix system raw", Fate::read},
    {kOllamaGenerate, "", "images", Fate::refused, "This model reads only text: it takes no pictures.", "[]"},
    {kOllamaGenerate, "", "template", Fate::refused, "A request cannot bring a template: write the whole prompt and send raw, or start the server with --template.", R"("")"},
    {kOllamaGenerate, "", "context", Fate::refused, "This server keeps no conversation as tokens: send its messages to /api/chat.", "[]"},
    {kOllamaGenerate, "", "width height steps", Fate::refused, "This model makes no pictures: leave it out.", "0"},
    {kOllamaEmbed, "", "input prompt dimensions", Fate::read},
    {kOllamaEmbed, "options", "num_ctx", Fate::read},
    {kOllamaEmbed, "options", "*", Fate::ignored, "no token is drawn for an embedding"},
    {kOllamaShow, "", "verbose", Fate::read},
    {kOllamaShow, "", "system template options", Fate::ignored, "the model is shown as it is served"},

    // --- Texts and tokens.
    {kEmbeddings, "", "input encoding_format dimensions pooling", Fate::read},
    {kEmbeddings, "", "truncate truncate_prompt_tokens", Fate::refused, "Texts are not cut: send texts that fit.", "false|-1"},
    {kEmbeddings, "", "normalize embd_normalize", Fate::refused, "Vectors have the length 1: leave this out, or set it to true.", "true|2"},
    {kRerank, "", "query documents top_n return_documents instruction", Fate::read},
    {kRerank, "documents[]", "text", Fate::read},
    {kRerank, "documents[]", "*", Fate::ignored, "the text alone is read"},
    {kRerank, "", "truncate max_tokens_per_doc max_chunks_per_doc", Fate::ignored, "documents are cut to what the model reads"},
    // --- vLLM's score.
    {kScore, "", "text_1 text_2 queries documents instruction", Fate::read},
    {kScore, "", "truncate_prompt_tokens", Fate::ignored, "texts are cut to what the model reads"},
    {kScore, "", "use_activation activation softmax", Fate::refused, "Scores come as the model gives them: leave this out, or set it to false.", "false"},
    {kTokenize, "", "prompt content add_special_tokens parse_special", Fate::read},
    {kDetokenize, "", "tokens", Fate::read},
};

// Returns whether the name of an unknown field suggests that the field constrains the answer.
bool names_a_constraint(std::string_view name) {
  constexpr std::string_view kWords[] = {"guided", "grammar", "schema", "regex", "structured", "constrain", "format", "json", "gbnf", "lark"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return name.find(word) != name.npos; });
}

using ByName = std::map<std::string_view, const FieldRule*, std::less<>>;
using ByPlace = std::map<std::string_view, ByName, std::less<>>;

ByPlace rules_of(Endpoint endpoint) {
  ByPlace places;
  for (const FieldRule& rule : kRules) {
    if ((rule.endpoints & endpoint) == 0) continue;
    for (std::string_view rest = rule.names; !rest.empty();) {
      const std::size_t blank = std::min(rest.find(' '), rest.size());
      if (blank > 0) places[rule.where].emplace(rest.substr(0, blank), &rule);
      rest.remove_prefix(std::min(blank + 1, rest.size()));
    }
  }
  return places;
}

const ByPlace& places_of(Endpoint endpoint) {
  static const std::array<ByPlace, kEndpoints> all = [] {
    std::array<ByPlace, kEndpoints> made;
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = rules_of(static_cast<Endpoint>(1u << i));
    return made;
  }();
  std::size_t index = 0;
  while ((endpoint >> index) > 1u) ++index;
  return all[index];
}

bool is_harmless(const Json& value, std::string_view values) {
  while (!values.empty()) {
    const std::size_t bar = std::min(values.find('|'), values.size());
    const auto each = Json::parse(values.substr(0, bar));
    if (each && *each == value) return true;
    values.remove_prefix(std::min(bar + 1, values.size()));
  }
  return false;
}

class Sieve {
 public:
  Sieve(const ByPlace& places, Notes& notes) : places_(places), notes_(notes) {}

  // Sifts an object. `where`: the object's place as the table names it ("tools[]"); `exact`: its place in this request ("tools[1]").
  void object(Json& json, const std::string& where, const std::string& exact) {
    const auto rules = places_.find(where);
    if (rules == places_.end()) return;  // no rules for this object: all its fields are read
    Json::Object kept;
    for (auto& [name, value] : *json.members()) {
      if (value.is_null()) continue;
      const std::string place = where.empty() ? name : fmt::format("{}.{}", where, name), path = exact.empty() ? name : fmt::format("{}.{}", exact, name);
      if (!keeps(rules->second, name, value, place, path)) continue;
      inside(value, place, path);
      kept.emplace_back(name, std::move(value));
    }
    *json.members() = std::move(kept);
  }

 private:
  bool keeps(const ByName& rules, const std::string& name, const Json& value, const std::string& place, const std::string& path) {
    auto found = rules.find(name);
    if (found == rules.end()) found = rules.find("*");
    if (found == rules.end()) {
      if (names_a_constraint(name)) {
        throw ApiError(400,
                       "This server does not know this field, whose name says that it constrains the answer. Leave it out, or send response_format, "
                       "guided_json, guided_regex, guided_choice or grammar.",
                       path);
      }
      notes_.ignore(path, place, "nobody here knows it.");
      return false;
    }
    const FieldRule& rule = *found->second;
    if (rule.fate == Fate::read) return true;
    if (rule.fate == Fate::ignored) notes_.ignore(path, place, fmt::format("{}.", rule.words));
    else if (!is_harmless(value, rule.harmless)) throw ApiError(400, std::string(rule.words), path);
    return false;
  }
  void inside(Json& value, const std::string& place, const std::string& path) {
    if (value.members() != nullptr) return object(value, place, path);
    if (value.elements() == nullptr) return;
    const std::string each = place + "[]";
    if (!places_.contains(each)) return;
    std::size_t i = 0;
    for (Json& element : *value.elements()) {
      if (element.members() != nullptr) object(element, each, fmt::format("{}[{}]", path, i));
      ++i;
    }
  }

  const ByPlace& places_;
  Notes& notes_;
};

}  // namespace

std::span<const FieldRule> field_rules() { return kRules; }

void sift(Json& body, Endpoint endpoint, Notes& notes) {
  if (body.members() == nullptr) throw ApiError(400, "The body must be a JSON object.");
  Sieve(places_of(endpoint), notes).object(body, "", "");
}

}  // namespace server

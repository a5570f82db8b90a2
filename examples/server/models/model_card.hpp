// The facts that are known about a model without its weights, for lists of models. At its start, the server makes a card for each model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/chat/chat_template.hpp>
#include <tessera/engine.hpp>
#include <tessera/extend/chat/output_format.hpp>
#include <tessera/json/json.hpp>

#include "json_object.hpp"

namespace server {

class ServedModel;

struct ModelCard {
  std::string id{};
  std::int64_t created = 0;       // seconds since 1970
  std::uint64_t context = 0;      // the most tokens of a prompt and its answer
  std::uint64_t vocabulary = 0;   // tokens
  std::uint64_t weights = 0;      // bytes
  std::uint64_t bytes = 0;        // planned memory of the loaded model: weights, keys and values, work memory
  bool on_device = false;         // a GPU computes
  std::string architecture{};
  std::string license{};
  std::string format = "unknown";  // "Q4_K_M"
  std::uint64_t parameters = 0;    // as the file states, or an estimate from its bytes; 0: not known
  std::string parameter_size{};    // "135M"
  bool writes = true;              // false: an encoder, which computes only vectors and scores
  bool embeds = false;             // the file says how texts become vectors
  bool fills_in = false;           // the model has tokens to fill in between texts; known after the model was loaded
  bool knows_tools = false;        // the template prints tools
  bool reasons = false;
  std::string template_source{};   // empty: no template
  // The keys and values of the file, without lists and chat templates. The context length is that of this server, not the file's.
  tessera::Json info{};

  [[nodiscard]] bool has_template() const noexcept { return !template_source.empty(); }
};

// Returns whether a file's model writes text. This is a guess by the settings; only the loaded model knows exactly.
[[nodiscard]] bool writes_text(const tessera::Settings& settings);
// Parses the text of a template that replaces the file's template. The template gets the texts of the file's special tokens. Returns nullopt
// if there is no text. Throws Failure.
[[nodiscard]] std::optional<tessera::ChatTemplate> template_of(const std::optional<std::string>& text, const tessera::ModelSource& source);
// Makes the card of a file. `chat_template` replaces the file's template. Throws Failure if the template is not valid.
[[nodiscard]] ModelCard make_card(std::string id, const tessera::ModelSource& source, const tessera::Plan& plan,
                                  const std::optional<tessera::ChatTemplate>& chat_template);
// Replaces the facts that the loaded model knows more exactly than the file.
void refresh_card(ModelCard& card, const ServedModel& model);

// Returns whether a model's answers may have reasoning: the format has a region for reasoning, and the template has a word such as "think".
[[nodiscard]] bool knows_reasoning(const tessera::OutputFormat& format, std::string_view template_source);

// Returns the object that describes a model in GET /v1/models, without its state.
[[nodiscard]] Object model_object(const ModelCard& card);

}  // namespace server

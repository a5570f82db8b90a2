// The JSON files of a model as hubs publish it (a folder): config.json, and the files beside it that say how to use the model.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <tessera/core/result.hpp>
#include <tessera/json/json.hpp>

namespace tessera::detail::hub {

// Returns the text of a file of the folder; an empty text if there is no such file. Errors: io; corrupt_file, the file is larger than
// `most` bytes.
[[nodiscard]] Result<std::string> read_text(const std::filesystem::path& folder, std::string_view name, std::uint64_t most);

// Returns the JSON object, or the list, in a file of the folder; null if there is no such file. Errors: corrupt_file, the file is not a
// JSON object (list); io.
[[nodiscard]] Result<Json> read_object(const std::filesystem::path& folder, std::string_view name);
[[nodiscard]] Result<Json> read_list(const std::filesystem::path& folder, std::string_view name);

// The configurations of one model. A key whose value is null counts as absent, as in transformers.
class Config {
 public:
  // Reads the folder's files. Errors: not_found, there is no config.json; corrupt_file, a file is not a JSON object; io.
  [[nodiscard]] static Result<Config> read(const std::filesystem::path& folder);

  // Return the value of a key of config.json; nullptr if it is absent. find() searches the part that describes the language model: the
  // object text_config in models that also read images or sound; the whole file in other models. find_anywhere() searches this part
  // first, and then the whole file.
  [[nodiscard]] const Json* find(std::string_view key) const noexcept;
  [[nodiscard]] const Json* find_anywhere(std::string_view key) const noexcept;
  // Returns the value of a key of config.json; nullptr if it is absent. Searches the whole file first, and then the part that describes
  // the language model.
  [[nodiscard]] const Json* find_outside(std::string_view key) const noexcept;
  // Return the value of a key of generation_config.json and of tokenizer_config.json, or nullptr.
  [[nodiscard]] const Json* in_generation(std::string_view key) const noexcept;
  [[nodiscard]] const Json* in_tokenizer(std::string_view key) const noexcept;

  // Returns the description of how the weights are quantised: quantization_config, or the file that older folders have instead
  // (hf_quant_config.json of ModelOpt, quantize_config.json of AutoGPTQ, quant_config.json of AutoAWQ); nullptr if weights are not quantised.
  [[nodiscard]] const Json* quantisation() const noexcept;

  [[nodiscard]] bool has_tokenizer_config() const noexcept { return !tokenizer_.is_null(); }
  [[nodiscard]] std::string_view model_type() const noexcept;  // such as "llama"; empty if config.json does not state it
  [[nodiscard]] const Json& whole() const noexcept { return whole_; }  // all of config.json
  [[nodiscard]] Json& whole() noexcept { return whole_; }

 private:
  [[nodiscard]] const Json& model() const noexcept;
  Json whole_, generation_, tokenizer_, quantisation_;
};

// Returns the value of a key; nullptr if `object` is not an object, or lacks the key, or has null as its value.
[[nodiscard]] const Json* find_in(const Json* object, std::string_view key) noexcept;

}  // namespace tessera::detail::hub

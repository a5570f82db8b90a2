// Adapters (LoRA) of the command line: --lora.
#pragma once

#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <tessera/adapter.hpp>
#include <tessera/engine.hpp>
#include <tessera/session.hpp>

struct Options;

struct LoraOption {
  std::string path;
  float scale = 1.0f;
};

// Parses FILE or FILE:SCALE. The text after the last colon is the scale if it is a number. Throws UsageError.
[[nodiscard]] LoraOption parse_lora(const std::string& text);

// Checks that the files of --lora exist, before the model is loaded, which can take long. Throws Failure, which names the file.
void check_lora_files(const Options& options);
// Loads the adapters of --lora. Throws Failure or UsageError, which name the file.
[[nodiscard]] std::vector<tessera::AdapterUse> load_adapters(const Options& options, const tessera::Engine& engine, const std::stop_token& stop);

// Returns a name for lists: the name in the adapter's file, or "adapter" if there is none.
[[nodiscard]] std::string adapter_name(const tessera::Adapter& adapter);
// Returns "rank 8, 42 matrices, 3.1 MB".
[[nodiscard]] std::string adapter_words(const tessera::Adapter& adapter);

// Returns whether both lists have the same adapters with the same scales, in any order. An adapter with scale 0 counts as absent.
[[nodiscard]] bool same_adapters(std::span<const tessera::AdapterUse> one, std::span<const tessera::AdapterUse> other);

// Prints on standard error which adapters of the session are not active yet, because the prompt did not contain their invocation.
void tell_of_waiting(const tessera::Session& session);

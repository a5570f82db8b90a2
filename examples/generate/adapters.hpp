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

// Parses FILE or FILE:SCALE. The scale is what follows the last colon, if that is a number. Throws UsageError.
[[nodiscard]] LoraOption parse_lora(const std::string& text);

// Loads the adapters of --lora. Errors are thrown, and name the file.
[[nodiscard]] std::vector<tessera::AdapterUse> load_adapters(const Options& options, const tessera::Engine& engine, const std::stop_token& stop);

// Returns a name for lists: that of the adapter's file, else "adapter".
[[nodiscard]] std::string adapter_name(const tessera::Adapter& adapter);
// Returns "rank 8, 42 matrices, 3.1 MB".
[[nodiscard]] std::string adapter_words(const tessera::Adapter& adapter);

// Returns whether both lists have the same adapters with the same scales, whatever their positions. A scale of 0 is no use.
[[nodiscard]] bool same_adapters(std::span<const tessera::AdapterUse> one, std::span<const tessera::AdapterUse> other);

// Says on standard error which adapters of the session wait for their invocation, which the prompt did not have.
void tell_of_waiting(const tessera::Session& session);

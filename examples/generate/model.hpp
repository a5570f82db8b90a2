// The model: the file that -m names, or the one inside this binary.
#pragma once

#include <stop_token>

#include "options.hpp"

// Reads and checks the header, no weights.
[[nodiscard]] tessera::ModelFile open_model(const Options& options);

[[nodiscard]] tessera::EngineOptions engine_options(const Options& options);

// With a progress bar where it takes long.
[[nodiscard]] tessera::Engine load_engine(const Options& options, std::stop_token stop);

// For titles: the name in the file's metadata, or else the file's own.
[[nodiscard]] std::string model_name(const Options& options, const tessera::Settings& settings);

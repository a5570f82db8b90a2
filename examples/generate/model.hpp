// The model: the file or folder that -m names, or the one inside this binary.
#pragma once

#include <filesystem>
#include <memory>
#include <stop_token>

#include "options.hpp"

// Returns the path of the model that -m names. Precondition: -m was given.
[[nodiscard]] std::filesystem::path model_path(const Options& options);

// Opens the model, without reading its weights.
[[nodiscard]] std::shared_ptr<const tessera::ModelSource> open_model(const Options& options);

[[nodiscard]] tessera::EngineOptions engine_options(const Options& options);

// Loads the engine, with a progress bar if it takes long.
[[nodiscard]] tessera::Engine load_engine(const Options& options, std::stop_token stop);

// Returns a name for titles: the name in the model's metadata, or the name of the file if there is none.
[[nodiscard]] std::string model_name(const Options& options, const tessera::Settings& settings);

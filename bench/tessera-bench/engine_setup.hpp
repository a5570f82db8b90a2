// Loads the engine that the command line describes.
#pragma once

#include <tessera/engine.hpp>
#include <tessera/files/model_file.hpp>

#include "options.hpp"
#include "measurement.hpp"
#include "status_line.hpp"

namespace tessera::bench {

[[nodiscard]] ModelFile open_model(const Options& options);
[[nodiscard]] Engine load_engine(const ModelFile& file, const Options& options, StatusLine& status);
[[nodiscard]] Subject subject_of(const ModelFile& file, const Engine& engine, const Options& options);

}  // namespace tessera::bench

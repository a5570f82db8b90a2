// Loads the engine that the command line describes.
#pragma once

#include <memory>

#include <tessera/engine.hpp>
#include <tessera/extend/files/model_source.hpp>

#include "options.hpp"
#include "measure/measurement.hpp"
#include "show/status_line.hpp"

namespace tessera::bench {

[[nodiscard]] std::shared_ptr<const ModelSource> open_model(const Options& options);
[[nodiscard]] Engine load_engine(const ModelSource& model, const Options& options, StatusLine& status);
[[nodiscard]] Subject subject_of(const ModelSource& model, const Engine& engine, const Options& options);

}  // namespace tessera::bench

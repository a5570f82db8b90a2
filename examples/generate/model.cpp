#include "model.hpp"

#include <cstddef>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "failure.hpp"
#include "model_place.hpp"
#include "output/terminal.hpp"
#include "system/program.hpp"

using tessera::Engine;
using tessera::EngineOptions;
using tessera::LogLevel;
using tessera::ModelFile;
using tessera::ModelSource;

#ifdef GENERATE_DEFAULT_MODEL
extern "C" const unsigned char default_model_begin[], default_model_end[];
#endif
#ifdef GENERATE_DEFAULT_HEADS
extern "C" const unsigned char default_heads_begin[], default_heads_end[];
#endif

namespace {

std::shared_ptr<const ModelSource> open_default_model() {
#ifdef GENERATE_DEFAULT_MODEL
  return std::make_shared<const ModelFile>(value(ModelFile::from_memory(std::as_bytes(std::span(default_model_begin, default_model_end)))));
#else
  throw Failure(tessera::ErrorCode::not_found, "this binary was built without a default model; name one with -m PATH");
#endif
}

// Returns the EAGLE head of the default model.
std::shared_ptr<const ModelSource> open_default_heads() {
#ifdef GENERATE_DEFAULT_HEADS
  return std::make_shared<const ModelFile>(value(ModelFile::from_memory(std::as_bytes(std::span(default_heads_begin, default_heads_end)))));
#else
  throw Failure(tessera::ErrorCode::not_found, "this binary was built without the default model's EAGLE head; name heads with --draft-heads FILE");
#endif
}

std::string_view level_name(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    default: return "error";
  }
}

}  // namespace

std::filesystem::path model_path(const Options& options) { return value(tessera::tool::model_place(*options.model)); }

std::shared_ptr<const ModelSource> open_model(const Options& options) {
  return options.model ? value(tessera::open_model(model_path(options))) : open_default_model();
}

EngineOptions engine_options(const Options& options) {
  EngineOptions result;
  result.kv = options.kv;
  result.merge = options.merge;
  result.context = options.context;
  result.sliding_window = options.sliding_window;
  if (options.drafting.by == DraftBy::mtp) result.mtp = tessera::MtpHeads::load;
  if (options.drafting.heads) result.draft_heads = tessera::tool::path_of(*options.drafting.heads);
  if (options.drafting.uses_default_heads) result.draft_heads_source = open_default_heads();
  result.backend = options.backend;
  result.cuda = options.cuda;
  result.numerics = options.numerics;
  result.activations = options.activations;
  result.instruction_set = options.instruction_set;
  result.threads = options.threads;
  options.ranks.put_into(result);
  result.log_level = options.log_level;
  result.log = [](LogLevel level, std::string_view message) {
    complain(fmt::format("[{}] {}", level_name(level), message));
  };
  return result;
}

Engine load_engine(const Options& options, std::stop_token stop) {
  ProgressBar bar("loading", ProgressBar::Unit::bytes);
  EngineOptions loading = engine_options(options);
  loading.stop = std::move(stop);
  loading.progress = [&bar](std::uint64_t done, std::uint64_t total) {
    bar.update(done, total);
    return true;
  };
  return options.model ? value(Engine::load(model_path(options), loading))
                       : value(Engine::load(*open_default_model(), loading));
}

std::string model_name(const Options& options, const tessera::Settings& settings) {
  const auto name = settings.string(tessera::Setting::name);
  if (name && !name->empty()) return std::string(*name);
  return options.model ? tessera::tool::text_of(tessera::tool::path_of(*options.model).filename()) : "the default model";
}

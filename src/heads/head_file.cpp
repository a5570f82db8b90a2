#include "heads/head_file.hpp"

#include <system_error>

#include "core/error.hpp"
#include "files/source_of_file.hpp"
#include "heads/readers.hpp"
#include "model/draft_heads.hpp"
#include "model/model.hpp"
#include "os/file.hpp"

namespace tessera::detail {

namespace {

// Returns `path` if it is a folder; the folder of `path` if it is a config.json or a safetensors file; otherwise an empty path.
std::filesystem::path folder_of_heads(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return path;
  const std::string name = os::text_of(path.filename());
  if (name != "config.json" && !name.ends_with(".safetensors") && !name.ends_with(".safetensors.index.json")) return {};
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

std::uint64_t HeadFile::memory_bytes() const noexcept {
  std::uint64_t bytes = sizeof *this + source->memory_bytes() + tensors.capacity() * sizeof(HeadTensor) + rope_divisors.capacity() * sizeof(float) +
                        guessed_tokens.capacity() * sizeof(Token) + spec.layers.capacity() * sizeof(LayerSpec);
  for (const HeadTensor& tensor : tensors) bytes += tensor.name.capacity();
  return bytes;
}

Result<HeadFile> read_draft_heads(const std::filesystem::path& path, const std::stop_token& stop) {
  HeadFile file;
  file.place = os::text_of(path);
  const std::filesystem::path folder = folder_of_heads(path);
  if (folder.empty()) {
    TESSERA_TRY(file.source, source_of_file(path, stop));
    TESSERA_TRY_STATUS(heads::read_eagle_gguf(file));
    return file;
  }
  TESSERA_TRY(const hub::Config config, hub::Config::read(folder));
  TESSERA_TRY(file.source, heads::safetensors_source(folder, stop));
  TESSERA_TRY_STATUS(heads::is_medusa(*file.source) ? heads::read_medusa(config, file) : heads::read_eagle_folder(config, file));
  return file;
}

Result<HeadFile> draft_heads_of_source(std::shared_ptr<const ModelSource> source) {
  HeadFile file;
  file.place = "draft heads of the host";
  file.source = std::move(source);
  TESSERA_TRY_STATUS(heads::read_eagle_gguf(file));
  return file;
}

Status add_heads(const HeadFile& heads, ModelSpec& spec) {
  const auto other = [&](std::string_view of, std::uint64_t theirs, std::uint64_t own) {
    return error_at(ErrorCode::invalid_argument, heads.place, "the draft heads are for a model of {} {}, and this model has {}: take heads that were trained for it",
                    theirs, of, own);
  };
  if (!spec.has_logits) return error_at(ErrorCode::invalid_argument, heads.place, "the model ({}) gives embeddings, and writes no text to draft", spec.architecture);
  if (heads.width != spec.d_model) return other("numbers in a hidden state", heads.width, spec.d_model);
  if (heads.vocab_size != 0 && heads.vocab_size != spec.vocab_size) return other("tokens", heads.vocab_size, spec.vocab_size);
  if (!heads.guessed_tokens.empty() && static_cast<std::uint64_t>(heads.guessed_tokens.back()) >= spec.vocab_size) {
    return other("tokens or more", static_cast<std::uint64_t>(heads.guessed_tokens.back()) + 1, spec.vocab_size);
  }
  if (spec.temperature_rate != 0.0 && heads.rope) {
    return error_at(ErrorCode::unsupported, heads.place, "{}: its queries grow with their position, and those of the heads would too", spec.architecture);
  }
  spec.draft_heads = heads.spec;
  spec.draft_heads.vocab_size = static_cast<std::uint32_t>(heads.guessed_tokens.size());
  if (heads.rope) {
    for (LayerSpec& layer : spec.draft_heads.layers) layer.rope = static_cast<std::uint32_t>(spec.ropes.size());
    spec.ropes.push_back(*heads.rope);
  }
  if (spec.draft_heads.kind != DraftHeadKind::eagle3) return {};
  const std::uint32_t n = spec.n_layers();
  if (!heads.features && n < 6) {
    return error_at(ErrorCode::invalid_argument, heads.place, "the file does not say which layers the head reads, and a model of {} layers has no usual ones", n);
  }
  spec.draft_heads.features = heads.features.value_or(std::array{2u, n / 2, n - 3});
  for (const std::uint32_t layer : spec.draft_heads.features) {
    if (layer > n) return other("layers or more", layer, n);
  }
  return {};
}

void finish_heads(const HeadFile& heads, Model& model) {
  model.guessed_tokens = heads.guessed_tokens;
  if (!heads.rope) return;
  std::vector<double>& frequencies = model.rope_frequencies.back();
  for (std::size_t i = 0; i < heads.rope_divisors.size(); ++i) frequencies[i] /= static_cast<double>(heads.rope_divisors[i]);
}

}  // namespace tessera::detail

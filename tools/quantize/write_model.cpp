#include "write_model.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <system_error>

#include <fmt/format.h>

#include "model_files.hpp"
#include "report.hpp"
#include "system/program.hpp"

namespace tessera::quantize {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostParts = std::numeric_limits<std::uint16_t>::max();

// Sets a key that says how a model is split. llama.cpp accepts only one type for each of these keys.
template <class T>
Status set_part_key(GgufWriter& writer, std::string_view key, ValueType type, T value) {
  std::array<std::byte, sizeof value> bytes;
  std::memcpy(bytes.data(), &value, sizeof value);
  return writer.copy({.key = key, .type = type, .element_type = type, .count = 1, .offset = 0, .bytes = bytes});
}

Status set_part_keys(GgufWriter& writer, std::size_t part, std::size_t parts, std::size_t tensors) {
  if (auto ok = set_part_key(writer, "split.no", ValueType::u16, static_cast<std::uint16_t>(part)); !ok) return ok;
  if (auto ok = set_part_key(writer, "split.count", ValueType::u16, static_cast<std::uint16_t>(parts)); !ok) return ok;
  return set_part_key(writer, "split.tensors.count", ValueType::i32, static_cast<std::int32_t>(tensors));
}

// Files that are written under temporary names. The destructor removes them, unless keep() has renamed them.
class Drafts {
 public:
  Drafts() = default;
  ~Drafts() {
    std::error_code ignored;
    for (const fs::path& path : paths_) fs::remove(path, ignored);
  }
  Drafts(const Drafts&) = delete;
  Drafts& operator=(const Drafts&) = delete;

  // Returns the temporary name of the file that will be `path`.
  const fs::path& add(const fs::path& path) {
    fs::path draft = path;
    draft += ".part";
    targets_.push_back(path);
    return paths_.emplace_back(std::move(draft));
  }
  Status keep() {
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      std::error_code problem;
      fs::rename(paths_[i], targets_[i], problem);
      if (problem) return Error(ErrorCode::io, fmt::format("cannot give the complete file its name: {}", problem.message()), tool::text_of(targets_[i]));
    }
    paths_.clear();
    return {};
  }

 private:
  std::vector<fs::path> paths_, targets_;
};

}  // namespace

Result<std::vector<OutputPart>> parts_of(const fs::path& out, std::span<const TensorPlan> steps, std::uint64_t part_bytes) {
  std::vector<OutputPart> parts;
  for (std::size_t first = 0; first < steps.size();) {
    std::size_t end = first;
    for (std::uint64_t bytes = 0; end < steps.size(); ++end) {
      if (part_bytes != 0 && end > first && steps[end].bytes > part_bytes - std::min(bytes, part_bytes)) break;
      bytes += steps[end].bytes;
    }
    parts.push_back({out, steps.subspan(first, end - first)});
    first = end;
  }
  if (parts.empty()) parts.push_back({out, steps});
  if (parts.size() > kMostParts) {
    return Error(ErrorCode::invalid_argument, fmt::format("the model would become {} files, and at most {} are possible: choose a larger --split-max-size", parts.size(), kMostParts));
  }
  if (parts.size() == 1) return parts;
  std::string name = tool::text_of(out.filename());
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].path = out.parent_path() / tool::path_of(fmt::format("{}-{:05}-of-{:05}.gguf", name, i + 1, parts.size()));
  }
  return parts;
}

Status spare_input(std::span<const OutputPart> parts, const fs::path& in) {
  for (const OutputPart& part : parts) {
    if (!tool::is_part_of(part.path, in)) continue;
    return Error(ErrorCode::invalid_argument, "the file is a part of IN: choose another name for the new model", tool::text_of(part.path));
  }
  return {};
}

Status write_model(const Writing& writing, std::span<const OutputPart> parts) {
  std::uint64_t total = 0;
  for (const TensorPlan& step : writing.steps) {
    total += step.values;
    if (writing.verbose) print_tensor(step);
  }
  const auto begin = std::chrono::steady_clock::now();
  ProgressLine line(total);
  const auto advance = [](void* context, std::uint64_t values) { static_cast<ProgressLine*>(context)->advance(values); };
  const Progress progress{advance, &line, writing.stop};
  std::vector<Loss> losses;
  losses.reserve(writing.steps.size());
  Drafts drafts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    GgufWriter writer;
    if (i == 0) {
      if (auto ok = writing.keys(writer); !ok) return ok;
    }
    if (parts.size() > 1) {
      if (auto ok = set_part_keys(writer, i, parts.size(), writing.steps.size()); !ok) return ok;
    }
    for (const TensorPlan& step : parts[i].steps) {
      if (auto ok = writer.add_tensor(step.tensor->name, step.to, std::span(step.tensor->dims.data(), step.tensor->n_dims)); !ok) return ok;
    }
    const auto encode = [&](std::string_view, const ByteSink& write) -> Status {
      const TensorPlan& step = writing.steps[losses.size()];  // tensors come in the order of the steps
      auto loss = encode_tensor(writing.model, step, writing.importance.of(step.tensor->name), writing.threads, write, progress);
      if (!loss) return std::move(loss).error();
      losses.push_back(*loss);
      return {};
    };
    // A single file is renamed by the writer when it is complete. Several files get their names only when the last one is complete.
    const auto written = writer.write_file(parts.size() == 1 ? parts[i].path : drafts.add(parts[i].path), encode);
    if (!written) {
      line.clear();
      return written;
    }
  }
  line.clear();
  if (*writing.stop != 0) return Error(ErrorCode::cancelled, "interrupted; nothing was written");
  if (auto ok = drafts.keep(); !ok) return ok;
  print_table(writing.steps, losses, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  if (parts.size() > 1) fmt::print("{} files, the first is {}\n", parts.size(), tool::text_of(parts.front().path));
  return {};
}

Status copy_keys(const ModelFile& model, const tool::Target* target, GgufWriter& writer) {
  for (const GgufEntry& entry : model.metadata().entries()) {
    const bool rewritten = target != nullptr && (entry.key == "general.file_type" || entry.key == "general.quantization_version");
    if (rewritten || entry.key.starts_with("split.")) continue;
    if (auto ok = writer.copy(entry); !ok) return ok;
  }
  if (target == nullptr) return {};
  if (auto ok = writer.set("general.file_type", tool::file_type(*target)); !ok) return ok;
  return writer.set("general.quantization_version", std::uint32_t{2});
}

}  // namespace tessera::quantize

// Writes a model to GGUF files, with each tensor in the format of its step. tessera-quantize and tessera-convert use it.
#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <tessera/extend/files/gguf_writer.hpp>

#include "encode.hpp"
#include "importance.hpp"
#include "plan.hpp"

namespace tessera::quantize {

struct Writing {
  const ModelSource& model;
  std::span<const TensorPlan> steps;
  const Importance& importance;
  std::uint32_t threads = 1;
  bool verbose = false;                        // print a line for each tensor
  const volatile std::sig_atomic_t* stop;      // *stop is not 0: give up
  std::function<Status(GgufWriter&)> keys;     // sets the keys of the (first) file
};

// One file of the model to write, with the steps of its tensors. parts_of() divides the steps among files. With `part_bytes` 0 there is one
// file `out`; otherwise there are parts NAME-00001-of-0000N.gguf, each with at most `part_bytes` bytes of tensors. A tensor is never cut,
// so a part with only one tensor may be larger. Error: more parts than a GGUF file can count.
struct OutputPart {
  std::filesystem::path path;
  std::span<const TensorPlan> steps;
};
[[nodiscard]] Result<std::vector<OutputPart>> parts_of(const std::filesystem::path& out, std::span<const TensorPlan> steps, std::uint64_t part_bytes);

// Returns an error if one of the parts would overwrite a file of the model at `in`.
[[nodiscard]] Status spare_input(std::span<const OutputPart> parts, const std::filesystem::path& in);

// Writes the parts, and prints the summary. If files with these names exist, they stay as they are until all parts are complete, also after
// an error or a signal: each part is written under another name in the same folder, and renamed at the end.
[[nodiscard]] Status write_model(const Writing& writing, std::span<const OutputPart> parts);

// Copies the keys of a GGUF file's metadata. Not copied: keys that say how the file is split and, if `target` is not nullptr, keys that
// depend on the formats of the tensors (they change with `target`).
[[nodiscard]] Status copy_keys(const ModelFile& model, const tool::Target* target, GgufWriter& writer);

}  // namespace tessera::quantize

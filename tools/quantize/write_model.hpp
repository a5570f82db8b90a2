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

// A file that a model with these steps becomes. parts_of() returns one file `out`, or parts NAME-00001-of-0000N.gguf if a part may have at
// most `part_bytes` bytes of tensors (0: no limit). A tensor is never cut, so a part with one tensor may be larger. Error: more parts than
// a GGUF file can count.
struct OutputPart {
  std::filesystem::path path;
  std::span<const TensorPlan> steps;
};
[[nodiscard]] Result<std::vector<OutputPart>> parts_of(const std::filesystem::path& out, std::span<const TensorPlan> steps, std::uint64_t part_bytes);

// Returns an error if one of the parts would overwrite a file of the model at `in`.
[[nodiscard]] Status spare_input(std::span<const OutputPart> parts, const std::filesystem::path& in);

// Writes the parts, and prints the summary. Writes each file under another name in the same folder, and renames the files when all are
// complete, so an error or a signal leaves older files as they were.
[[nodiscard]] Status write_model(const Writing& writing, std::span<const OutputPart> parts);

// Copies the keys of a GGUF file. Exceptions: keys that say how the file is split; if `target` is not nullptr, also the keys that depend on
// the formats of `target`.
[[nodiscard]] Status copy_keys(const ModelFile& model, const tool::Target* target, GgufWriter& writer);

}  // namespace tessera::quantize

// A model of a known shape with made-up weights: a GGUF whose bytes are computed when they are read, so that memory
// holds nothing but what the engine packs. The same shape, format and context give the same bytes everywhere.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include <tessera/extend/files/byte_source.hpp>

#include "format_mix.hpp"
#include "shapes.hpp"

namespace tessera::bench {

// `context`: positions that the model is to know, where it is more than the shape's own. Learned positions take memory
// by it. No vocabulary: the engine must be told to do without.
[[nodiscard]] std::shared_ptr<ByteSource> made_up_model(const Shape& shape, const tool::Target& format,
                                                        std::uint32_t context);

// The same as a file, with a vocabulary of made-up words so that other programs load it. `advance` is told of bytes
// written and in all, and returns false to give up, which throws Interrupted and leaves no file.
void write_made_up_model(const Shape& shape, const tool::Target& format, std::uint32_t context,
                         const std::filesystem::path& path,
                         const std::function<bool(std::uint64_t done, std::uint64_t total)>& advance);

}  // namespace tessera::bench

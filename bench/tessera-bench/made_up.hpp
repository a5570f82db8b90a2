// A model of a known shape with made-up weights, to measure speed without the model's file. It is a GGUF file whose bytes are computed when
// they are read, so only the engine's packed weights take memory. The same shape, format and context give the same bytes on every machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include <tessera/extend/files/byte_source.hpp>

#include "format_mix.hpp"
#include "shapes.hpp"

namespace tessera::bench {

// Makes the model as a byte source. `context`: the context that the model must allow, in tokens, if it is longer than the shape's own. (A
// table of learned positions becomes longer with it.) The model has no vocabulary, so load it with TokenizerUse::none.
[[nodiscard]] std::shared_ptr<ByteSource> made_up_model(const Shape& shape, const tool::Target& format,
                                                        std::uint32_t context);

// Writes the model of made_up_model() to a file, with a vocabulary of made-up words, so that other programs can load it. Calls `advance`
// with the number of bytes written so far and the number of all bytes. If `advance` returns false, removes the file and throws Interrupted.
void write_made_up_model(const Shape& shape, const tool::Target& format, std::uint32_t context,
                         const std::filesystem::path& path,
                         const std::function<bool(std::uint64_t done, std::uint64_t total)>& advance);

}  // namespace tessera::bench

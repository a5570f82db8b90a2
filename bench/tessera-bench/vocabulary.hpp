// A vocabulary of made-up words, for programs that do not load a model without a vocabulary.
#pragma once

#include <cstdint>

#include <tessera/extend/files/gguf_writer.hpp>

namespace tessera::bench {

// Adds a SentencePiece vocabulary of `size` tokens to the file: three control tokens, 256 byte tokens, then words.
void add_vocabulary(GgufWriter& writer, std::uint32_t size);

}  // namespace tessera::bench

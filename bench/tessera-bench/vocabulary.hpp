// A vocabulary of made-up words: just enough for a program that insists on one.
#pragma once

#include <cstdint>

#include <tessera/extend/files/gguf_writer.hpp>

namespace tessera::bench {

// SentencePiece style, `size` tokens: the three controls, the 256 bytes, then words.
void add_vocabulary(GgufWriter& writer, std::uint32_t size);

}  // namespace tessera::bench

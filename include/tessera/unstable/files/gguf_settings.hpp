// Writes the settings of a model of any kind into a GGUF file.
#pragma once

#include <tessera/core/result.hpp>
#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/files/settings.hpp>

namespace tessera {

// Writes every setting that `settings` has under GGUF's key. Settings for which GGUF has no key are left out, so a tokenizer must be in the
// form of lists (list_tokenizer()). Errors: those of the settings; invalid_argument, there is no architecture; out_of_memory.
[[nodiscard]] Status write_settings(GgufWriter& writer, const Settings& settings) noexcept;

}  // namespace tessera

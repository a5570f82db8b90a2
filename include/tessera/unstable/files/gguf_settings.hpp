// Writes the settings of a model of any kind into a GGUF file.
#pragma once

#include <tessera/core/result.hpp>
#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/files/settings.hpp>

namespace tessera {

// Writes every setting of `settings` under GGUF's key for it. Settings for which GGUF has no key are left out. GGUF has no key for a
// tokenizer.json or a tokenizer.model, so convert such a tokenizer into lists first (list_tokenizer()). Errors: those of the settings;
// invalid_argument, there is no architecture; out_of_memory.
[[nodiscard]] Status write_settings(GgufWriter& writer, const Settings& settings) noexcept;

}  // namespace tessera

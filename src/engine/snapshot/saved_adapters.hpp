// The adapters of a saved session.
#pragma once

#include <tessera/core/result.hpp>

#include "engine/adapters/loaded_adapters.hpp"
#include "engine/adapters/sequence_adapters.hpp"
#include "engine/snapshot/sections.hpp"

namespace tessera::detail::snapshot {

// Reads the section of adapters, and finds each saved adapter among the engine's loaded adapters. Errors: corrupt_file; not_found, the
// engine has not loaded an adapter of this content.
[[nodiscard]] Result<SequenceAdapters> read_adapters(SectionReader& in, const LoadedAdapters& loaded);

}  // namespace tessera::detail::snapshot

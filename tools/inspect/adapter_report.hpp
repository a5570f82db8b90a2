// The report of tessera-inspect on an adapter (LoRA), as text and as JSON.
#pragma once

#include <string>

#include <tessera/unstable/adapters/adapter_listing.hpp>

namespace tessera::inspect {

// Return the report. Control characters in texts of the file are escaped.
std::string adapter_text(const AdapterListing& listing);
std::string adapter_json(const AdapterListing& listing);

}  // namespace tessera::inspect

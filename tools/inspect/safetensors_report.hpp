// The report of tessera-inspect on safetensors files: their tensors, as text and as JSON.
#pragma once

#include <filesystem>
#include <string>

#include <tessera/unstable/files/safetensors_listing.hpp>

namespace tessera::inspect {

// Returns whether the path is a folder without config.json, or a .safetensors file: tensors without a model.
bool is_safetensors(const std::filesystem::path& path);

std::string safetensors_text(const SafetensorsListing& listing);
std::string safetensors_json(const SafetensorsListing& listing);

}  // namespace tessera::inspect

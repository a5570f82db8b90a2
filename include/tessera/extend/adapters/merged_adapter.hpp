// An adapter (LoRA) that is merged into a model's weights when the model is loaded (EngineOptions::merge).
#pragma once

#include <filesystem>

namespace tessera {

// Each matrix W that the adapter changes becomes W + scale * B A, in the model's own number format: changes that are smaller than the
// format's steps are lost by rounding. With DoRA the rows then get the lengths that the adapter gives. The scale that the adapter's file
// states is a factor too.
struct MergedAdapter {
  std::filesystem::path path = {};  // a GGUF file, or a folder of PEFT (adapter_config.json, adapter_model.safetensors)
  float scale = 1.0f;
};

}  // namespace tessera

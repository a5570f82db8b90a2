// An adapter (LoRA) that is merged into a model's weights when the model is loaded (EngineOptions::merge).
#pragma once

#include <filesystem>

namespace tessera {

// Each matrix W that the adapter changes becomes W + scale * s * B A, where s is the scale that the adapter's file states. The sum is
// rounded to the model's own number format, so changes smaller than a step of that format are lost. A DoRA adapter then also sets the
// length of each row of the sum.
struct MergedAdapter {
  std::filesystem::path path = {};  // a GGUF file, or a folder of PEFT (adapter_config.json, adapter_model.safetensors)
  float scale = 1.0f;
};

}  // namespace tessera

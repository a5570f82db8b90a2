// An adapter (LoRA) that is merged into a model's weights when the model is loaded (EngineOptions::merge).
#pragma once

#include <filesystem>

namespace tessera {

// Each matrix W that the adapter changes becomes W + scale * s * B A, where s is the scale that the adapter's file states, and A and B are
// the two matrices in the file. A DoRA adapter then also sets the length of each row of the sum. The result is rounded to the number format
// that the model has for W. So a change is lost if it is smaller than the distance between neighbouring numbers of this format.
struct MergedAdapter {
  std::filesystem::path path = {};  // a GGUF file, or a folder of PEFT (adapter_config.json, adapter_model.safetensors)
  float scale = 1.0f;
};

}  // namespace tessera

// An adapter (LoRA) that is merged into a model's weights when the model is loaded (EngineOptions::merge).
#pragma once

#include <filesystem>

namespace tessera {

// When the model is loaded, each weight matrix W that the adapter changes becomes W + scale * s * B A. A and B are the adapter's two small
// matrices for W, s is the scale that the adapter's file states, and `scale` is the caller's. A DoRA adapter then also sets the length
// (Euclidean norm) of each row of the sum. Last, the result is rounded to the number format that the model has for W: a change that is
// smaller than the distance between neighbouring numbers of this format is lost.
struct MergedAdapter {
  std::filesystem::path path = {};  // a GGUF file, or a folder of PEFT (adapter_config.json, adapter_model.safetensors)
  float scale = 1.0f;
};

}  // namespace tessera

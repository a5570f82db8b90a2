// The tiny models of tests/golden/data/mtp, which have MTP heads.
#pragma once

#include <functional>

#include "engine/models.hpp"

namespace tessera::test {

inline const std::vector<std::string>& mtp_models() {
  static const std::vector<std::string> names{"glm4moe", "qwen35", "qwen3next", "deepseek-v3"};
  return names;
}
inline std::filesystem::path mtp_file(const std::string& name, const char* ending = ".gguf") { return golden_dir() / "mtp" / (name + ending); }

inline Engine load_mtp(const std::string& name, EngineOptions options = {.mtp = MtpHeads::load}) {
  if (options.threads == 0) options.threads = 2;
  return must(Engine::load(mtp_file(name), options));
}

// The model with another tensor: `change` gets its values.
inline Engine load_mtp_with(const std::string& name, const std::string& tensor, const std::function<void(std::span<float>)>& change) {
  std::ifstream in(mtp_file(name), std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
  const ModelFile file = must(ModelFile::open(mtp_file(name)));
  const GgufTensor* found = file.find_tensor(tensor);
  REQUIRE(found != nullptr);
  std::vector<float> values(found->bytes / sizeof(float));
  std::memcpy(values.data(), bytes.data() + found->offset, found->bytes);
  change(values);
  std::memcpy(bytes.data() + found->offset, values.data(), found->bytes);
  return must(Engine::load(must(ModelFile::from_memory(std::as_bytes(std::span(bytes)))), {.mtp = MtpHeads::load, .threads = 2}));
}

}  // namespace tessera::test

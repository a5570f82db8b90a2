#include <algorithm>
#include "adapters/adapter_file.hpp"
#include "core/error.hpp"
#include "core/hasher.hpp"
#include <tessera/files/model_file.hpp>
namespace tessera::detail {
bool is_adapter(const std::filesystem::path&) noexcept { return false; }
Result<AdapterFile> read_adapter(const std::filesystem::path& path, const AdapterBase& base, const std::stop_token&) {
  TESSERA_TRY(const ModelFile file, ModelFile::open(path));
  AdapterFile made;
  made.name = path.stem().string();
  float alpha = 0;
  TESSERA_TRY(const double number, file.metadata().number_or("adapter.lora.alpha", 0.0));
  alpha = static_cast<float>(number);
  if (file.metadata().find("adapter.alora.invocation_tokens") != nullptr) {
    TESSERA_TRY(const GgufArray list, file.metadata().array("adapter.alora.invocation_tokens"));
    for (std::uint64_t k = 0; k < list.size(); ++k) made.invocation.push_back(static_cast<Token>(list.integer(k)));
  }
  for (std::uint32_t i = 0; i < base.tensors.size(); ++i) {
    const auto& t = base.tensors[i];
    const auto* a = file.find_tensor(t.name + ".lora_a");
    const auto* b = file.find_tensor(t.name + ".lora_b");
    if (a == nullptr || b == nullptr) continue;
    AdapterTensor x;
    x.tensor = i;
    x.is_embedding = t.name == "token_embd.weight";
    x.rank = static_cast<std::uint32_t>(b->dims[0]);
    x.dtype = a->dtype;
    x.a_count = a->dims[2]; x.b_count = b->dims[2];
    x.a.resize(a->bytes); x.b.resize(b->bytes);
    TESSERA_TRY_STATUS(file.read(*a, 0, x.a));
    TESSERA_TRY_STATUS(file.read(*b, 0, x.b));
    x.scale = alpha != 0 ? alpha / static_cast<float>(x.rank) : 1.0f;
    made.tensors.push_back(std::move(x));
  }
  Hasher128 hash;
  for (const auto& t : made.tensors) { hash.add(t.a); hash.add(t.b); hash.add(std::as_bytes(std::span(&t.scale, 1))); hash.add(std::as_bytes(std::span(&t.tensor,1))); }
  made.content = hash.digest();
  return made;
}
}

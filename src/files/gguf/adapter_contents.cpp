#include "files/adapter_contents.hpp"

#include <limits>
#include <utility>

#include <tessera/extend/files/gguf.hpp>

#include "core/error.hpp"
#include "core/printable.hpp"

namespace tessera::detail {

namespace {

constexpr std::string_view kAdapterType = "adapter";
constexpr std::uint64_t kMostInvocationTokens = 4096;

class GgufAdapter final : public AdapterContents {
 public:
  explicit GgufAdapter(GgufFile file) noexcept : file_(std::move(file)) {}

  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept override { return file_.tensors(); }
  [[nodiscard]] Status read(const TensorInfo& tensor, std::span<std::byte> out) const noexcept override {
    return file_.source().read(tensor.offset, out);
  }

 private:
  GgufFile file_;
};

Result<std::vector<Token>> invocation_of(const GgufFile& file, const std::string& place) {
  constexpr std::string_view kKey = "adapter.alora.invocation_tokens";
  std::vector<Token> tokens;
  if (file.find(kKey) == nullptr) return tokens;
  TESSERA_TRY(const GgufArray list, file.array(kKey));
  if (!list.is_integer() || list.size() > kMostInvocationTokens) {
    return error_at(ErrorCode::corrupt_file, place, "{}: expected at most {} token ids", kKey, kMostInvocationTokens);
  }
  for (std::uint64_t i = 0; i < list.size(); ++i) {
    const std::int64_t token = list.integer(i);
    if (token < 0 || token > std::numeric_limits<Token>::max()) {
      return error_at(ErrorCode::corrupt_file, place, "{}: {} is no token id", kKey, token);
    }
    tokens.push_back(static_cast<Token>(token));
  }
  return tokens;
}

}  // namespace

bool is_adapter_file(const std::filesystem::path& path) {
  auto source = open_file(path);
  if (!source) return false;
  const auto file = GgufFile::read(*std::move(source));
  if (!file) return false;
  const auto type = file->string_or("general.type", "");
  return type && *type == kAdapterType;
}

Result<std::shared_ptr<const AdapterContents>> open_adapter_file(const std::filesystem::path& path, const std::stop_token& stop) {
  TESSERA_TRY(auto source, open_file(path));
  const std::string place = source->name();
  TESSERA_TRY(GgufFile file, GgufFile::read(std::move(source), stop));
  TESSERA_TRY(const auto type, file.string_or("general.type", "model"));
  if (type != kAdapterType) {
    return error_at(ErrorCode::unsupported, place, "general.type is \"{}\": the file is no adapter; give the path of a LoRA adapter",
                    printable(type));
  }
  TESSERA_TRY(const auto kind, file.string_or("adapter.type", ""));
  if (kind != "lora") {
    return error_at(ErrorCode::unsupported, place, "adapter.type is \"{}\"; tessera reads \"lora\"", printable(kind));
  }
  auto contents = std::make_shared<GgufAdapter>(file);
  TESSERA_TRY(contents->name, file.string_or("general.name", ""));
  TESSERA_TRY(contents->base, file.string_or("general.base_model.0.name", ""));
  TESSERA_TRY(contents->architecture, file.string_or("general.architecture", ""));
  TESSERA_TRY(contents->alpha, file.number_or("adapter.lora.alpha", 0.0));
  TESSERA_TRY(contents->invocation, invocation_of(file, place));
  return std::shared_ptr<const AdapterContents>(std::move(contents));
}

}  // namespace tessera::detail

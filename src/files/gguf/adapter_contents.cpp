#include "files/adapter_contents.hpp"

#include <array>
#include <limits>
#include <span>
#include <string_view>
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

// Returns the number of tensors that a GGUF file states; 0 if the file has no such number (GgufFile::read() then says what the file is).
std::uint64_t stated_tensors(ByteSource& source) noexcept {
  struct Start {
    std::array<char, 4> magic{};
    std::uint32_t version = 0;
    std::uint64_t tensors = 0;
  };
  static_assert(sizeof(Start) == 16);
  Start start;
  if (source.size() < sizeof start || !source.read(0, std::as_writable_bytes(std::span(&start, 1)))) return 0;
  const bool is_gguf = std::string_view(start.magic.data(), start.magic.size()) == "GGUF";
  return is_gguf && (start.version == 2 || start.version == 3) ? start.tensors : 0;  // version 1 has numbers of 32 bits
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

Result<std::shared_ptr<const AdapterContents>> open_adapter_file(const std::filesystem::path& path, std::uint64_t most_tensors,
                                                                 const std::stop_token& stop) {
  TESSERA_TRY(auto source, open_file(path));
  const std::string place = source->name();
  if (const std::uint64_t count = stated_tensors(*source); count > most_tensors) {
    return error_at(ErrorCode::corrupt_file, place,
                    "the file states {} tensors, and an adapter for this model has at most {}: the file is no adapter, or it belongs to another "
                    "model",
                    count, most_tensors);
  }
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

// libFuzzer's entry to the GGUF reader: any bytes give an error or a sound parse, and what parses can be written again
// and then reads the same. See CMakeLists.txt for how to run it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/files/model_file.hpp>

#include "files/gguf_bytes.hpp"

namespace {

void require(bool promise) {
  if (!promise) std::abort();
}

// As far as data go: tensors may claim more of them than is worth copying.
void check_rewrite(const tessera::ModelFile& file) {
  using namespace tessera;
  GgufWriter writer;
  for (const auto& entry : file.metadata().entries()) require(writer.copy(entry).has_value());
  for (const auto& tensor : file.tensors()) {
    require(writer.add_tensor(tensor.name, tensor.dtype, {tensor.dims.data(), tensor.n_dims}).has_value());
  }
  std::vector<std::byte> out;
  const auto done = writer.write(
      [&](std::span<const std::byte> bytes) { return out.insert(out.end(), bytes.begin(), bytes.end()), Status(); },
      [&](std::string_view name, const ByteSink& write) -> Status {
        const auto* tensor = file.find_tensor(name);
        std::vector<std::byte> data(tensor->bytes);
        if (auto read = file.read(*tensor, 0, data); !read) return read;
        return write(data);
      });
  require(done.has_value());
  const auto again = ModelFile::from_memory(out);
  require(again.has_value() && gguf_bytes::is_sound(again->metadata()));
  require(again->tensors().size() == file.tensors().size());
  require(again->metadata().entries().size() == file.metadata().entries().size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = tessera::ModelFile::from_memory(std::as_bytes(std::span(data, size)));
  if (!file) {
    require(!file.error().message().empty() && file.error().code() != tessera::ErrorCode::internal);
    return 0;
  }
  require(gguf_bytes::is_sound(file->metadata()));
  check_rewrite(*file);
  return 0;
}

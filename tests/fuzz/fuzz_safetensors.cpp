// libFuzzer's entry to the safetensors reader: any bytes give an error or a sound parse; read as an index, an error or its entries. See
// CMakeLists.txt for how to run it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "files/safetensors/safetensors_file.hpp"
#include "files/safetensors/safetensors_index.hpp"
#include "files/safetensors_bytes.hpp"

namespace {

void require(bool promise) {
  if (!promise) std::abort();
}

class Entries final : public tessera::detail::IndexEntry {
 public:
  tessera::Status operator()(std::string_view tensor, std::string_view file) override {
    require(tensor.size() <= 4096 && file.size() <= 255);
    return {};
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tessera;
  const auto source = memory_source(std::as_bytes(std::span(data, size)));
  require(source.has_value());
  const auto file = detail::SafetensorsFile::read(*source);
  if (file) require(safetensors_bytes::is_sound(file->tensors(), file->header_bytes(), size));
  else require(!file.error().message().empty() && file.error().code() != ErrorCode::internal);
  Entries entries;
  const auto walked = detail::walk_index(**source, entries, {});
  require(walked || walked.error().code() != ErrorCode::internal);
  return 0;
}

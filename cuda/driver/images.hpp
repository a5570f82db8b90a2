// The compiled kernels inside this library: a fat binary for each .cu of cuda/kernels (TesseraCuda.cmake).
#pragma once

#include <span>

namespace tessera::cuda {

struct Image {
  const char* name;            // the source's name without its ending
  const unsigned char* bytes;  // in the form that cuModuleLoadData() reads
};

[[nodiscard]] std::span<const Image> images() noexcept;

}  // namespace tessera::cuda

// Makes the CUDA backend, or returns an error that says why it cannot. Including this header needs no CUDA header.
#pragma once

#include <memory>

#include <tessera/backend/cuda_options.hpp>
#include <tessera/core/numerics.hpp>
#include <tessera/core/result.hpp>
#include <tessera/extend/core/memory.hpp>

#include "backend/backend.hpp"

namespace tessera::cuda {

// Opens the device. Errors: a build without the backend; no driver; no such device; a device that is too old; no memory.
[[nodiscard]] Result<std::unique_ptr<backend::Backend>> make_backend(const CudaOptions& options, Numerics numerics,
                                                                     Memory& host);

// Makes a backend that only computes sizes, for planning. It needs neither a driver nor a device.
[[nodiscard]] Result<std::unique_ptr<backend::Backend>> make_planner(Numerics numerics, Memory& host);

}  // namespace tessera::cuda

// Makes a ByteSource and an Executor for the library from the functions that a host passes in C.
#pragma once

#include <memory>
#include <string>

#include <tessera/extend/core/executor.hpp>
#include <tessera/extend/files/byte_source.hpp>

#include "values/structs.hpp"

namespace tessera::c {

// Returns a source that reads by the host's functions. `drop` is the one of `given`. Error: invalid_argument, `given`
// has no read().
[[nodiscard]] std::shared_ptr<ByteSource> host_source(const tessera_source& given, SharedDrop drop);
// Returns an executor that runs tasks on the host's threads.
[[nodiscard]] std::shared_ptr<Executor> host_executor(const tessera_engine_options& given, SharedDrop drop);

}  // namespace tessera::c

// A ByteSource and an Executor for the library, made of the functions that a host gives in C.
#pragma once

#include <memory>
#include <string>

#include <tessera/extend/core/executor.hpp>
#include <tessera/extend/files/byte_source.hpp>

#include "values/structs.hpp"

namespace tessera::c {

// The host's source. `drop` was taken from `given`. Errors: invalid_argument, there is no read().
[[nodiscard]] std::shared_ptr<ByteSource> host_source(const tessera_source& given, SharedDrop drop);
// The host's threads.
[[nodiscard]] std::shared_ptr<Executor> host_executor(const tessera_engine_options& given, SharedDrop drop);

}  // namespace tessera::c

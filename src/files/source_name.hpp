// Returns the name, for error messages, of a byte source whose class the application implements. If the application's name() throws, this
// throws CallbackFailed (core/callback.hpp).
#pragma once

#include <string>

#include <tessera/extend/files/byte_source.hpp>

#include "core/callback.hpp"

namespace tessera::detail {

inline std::string name_of(const ByteSource& source) {
  return call_host("ByteSource::name()", [&] { return source.name(); });
}

}  // namespace tessera::detail

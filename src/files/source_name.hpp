// name_of() returns a byte source's name, for error messages. The application may implement the source: if its name() throws, name_of()
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

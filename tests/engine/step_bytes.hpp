// Writes a description into bytes and reads it back: a description has nothing but numbers.
#pragma once

#include <vector>

#include "catch.hpp"
#include "ranks/step_bytes.hpp"

namespace tessera::test {

// Returns the description that is read from the bytes of `description`.
template <class Description>
Description through_bytes(const Description& description) {
  std::vector<std::byte> bytes;
  detail::ByteWriter writer(bytes);
  detail::each_number(writer, description);
  detail::ByteReader reader(bytes);
  Description read;
  detail::each_number(reader, read);
  CHECK(reader.is_at_end());
  CHECK(read == description);
  return read;
}

}  // namespace tessera::test

// A token: its index in the vocabulary, from 0.
#pragma once

#include <cstdint>

namespace tessera {

using Token = std::int32_t;

}  // namespace tessera

// Stretches of a text between markers, for example a model's reasoning before its answer.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// A stretch from one of the `open` markers to the first `close` marker after it, including both markers. Without a close marker, the
// stretch ends with the text.
struct MarkedText {
  std::vector<std::string> open{}, close{};
};

}  // namespace tessera

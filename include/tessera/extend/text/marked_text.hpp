// Stretches of a text between markers, for example a model's reasoning before its answer.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// The markers of a stretch of text. A stretch begins with one of the `open` markers, and ends with the first `close` marker after it. Both
// markers belong to the stretch. If no close marker follows, the stretch ends with the text.
struct MarkedText {
  std::vector<std::string> open{}, close{};
};

}  // namespace tessera

// Stretches of a text between markers, for example a model's reasoning before its answer.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// A stretch goes from one of the `open` markers to the first of the `close` markers behind it, markers included. Without a close marker it
// goes to the text's end.
struct MarkedText {
  std::vector<std::string> open{}, close{};
};

}  // namespace tessera

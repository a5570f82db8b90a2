// Stretches of a text between markers, such as what a model writes before its answer.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// From one of the `open` markers to the first of the `close` markers behind it, markers included; without one to the text's end.
struct MarkedText {
  std::vector<std::string> open{}, close{};
};

}  // namespace tessera

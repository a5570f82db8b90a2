// Functions that compute keys of config.json from settings, for keys that many types of models have. The functions are the inverses of
// map_rope(), map_partial_rope(), map_windows() and others of tables/common.hpp.
#pragma once

#include "hub/written/filling.hpp"

namespace tessera::detail::hub {

// Sets rope_theta and rope_scaling (as transformers 4 wrote them; transformers 5 reads them too).
void fill_rope(Filling& f);
// Returns the object of rope_scaling, with its rope_type; null if positions are not scaled.
[[nodiscard]] Json rope_scaling_of(const Filling& f);
// Sets rope_parameters, with llama_4_scaling_beta (the rate by which queries grow with their position).
void fill_temperature(Filling& f);
// Sets `key` to the share of a head's elements that rotate.
void fill_partial_rope(Filling& f, std::string_view key = "partial_rotary_factor");
// Sets sliding_window; null if no layer has a window.
void fill_window(Filling& f);
// fill_window_types() sets layer_types from the layers' windows. If all layers are alike, it sets the key only with WhenAlike::always.
enum class WhenAlike : std::uint8_t { leave_out, always };
void fill_window_types(Filling& f, WhenAlike when);
// Returns the number n with 1 / sqrt(n) = scale, as a whole number if a whole number fits.
[[nodiscard]] double inverse_square(double scale);

}  // namespace tessera::detail::hub

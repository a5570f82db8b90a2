// Says to which layers an entry of a quantisation's configuration applies: an entry of config_groups (compressed-tensors) or of
// quantized_layers (ModelOpt).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/result.hpp>
#include <tessera/json/json.hpp>

namespace tessera::detail::hub {

// How an entry names a layer. An entry that names the layer itself has priority over an entry that names all layers of a class.
enum class Naming : std::uint8_t { not_at_all, by_class, by_name };

class LayerPatterns {
 public:
  LayerPatterns() = default;  // all layers, by their class
  // Reads the "targets" of an entry. A target is the name of a module ("lm_head"), a pattern that must match from a name's beginning
  // ("re:.*q_proj"), or a class of modules. The only class that is accepted is Linear, which means all quantised matrices. Errors:
  // unsupported, another class, or a pattern that PCRE2 refuses.
  [[nodiscard]] static Result<LayerPatterns> read(const Json* targets);
  // Returns the pattern that names only this layer.
  [[nodiscard]] static LayerPatterns of_layer(std::string name);

  // Returns whether the entry applies to a layer, and how it names the layer: by name or by class. `module`: the name of the layer's
  // tensor without ".weight". Error: unsupported, a pattern takes too many steps.
  [[nodiscard]] Result<Naming> naming(std::string_view module) const;

 private:
  struct Code;
  bool names_class_ = true;
  std::vector<std::string> names_;
  std::vector<std::shared_ptr<const Code>> codes_;
};

}  // namespace tessera::detail::hub

// Finds the targets of $ref: schemas of the same document, by URI, anchor or JSON pointer (RFC 3986, RFC 6901).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tessera/json/json.hpp>


namespace tessera::grammar {

enum class Draft : std::uint8_t { draft4, draft7, draft2020 };

class References {
 public:
  References(const Json& root, Draft draft);

  // Returns the schema to which a reference points. `from`: the schema that contains the reference, because a relative reference depends
  // on the base URI there. If the reference points to no schema of this document, fails with an error that names the reference.
  [[nodiscard]] const Json* find(const Json& from, std::string_view reference) const;

 private:
  void walk(const Json& node, std::uint32_t base);
  [[nodiscard]] std::uint32_t name(const Json& node, std::uint32_t base);

  Draft draft_;
  std::vector<std::string> bases_{std::string()};
  std::unordered_map<const Json*, std::uint32_t> base_of_;
  std::unordered_map<std::string, const Json*> targets_;        // keys are "uri" and "uri#anchor"
  // Values of unknown keywords, with the index of the base URI that applies there.
  std::vector<std::pair<const Json*, std::uint32_t>> unknown_;
};

}  // namespace tessera::grammar

// Finds the targets of $ref: the schemas of one document by their URIs, anchors and JSON pointers (RFC 3986, RFC 6901).
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

  // Returns the target of a reference. Fails, naming the reference, if the target is not in this document.
  [[nodiscard]] const Json* find(const Json& from, std::string_view reference) const;

 private:
  void walk(const Json& node, std::uint32_t base);
  [[nodiscard]] std::uint32_t name(const Json& node, std::uint32_t base);

  Draft draft_;
  std::vector<std::string> bases_{std::string()};
  std::unordered_map<const Json*, std::uint32_t> base_of_;
  std::unordered_map<std::string, const Json*> targets_;        // "uri" and "uri#anchor"
  std::vector<std::pair<const Json*, std::uint32_t>> unknown_;  // values of unknown keywords, and their bases
};

}  // namespace tessera::grammar

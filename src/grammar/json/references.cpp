#include "grammar/json/references.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "grammar/fuel.hpp"
#include "grammar/json/schema_values.hpp"

namespace tessera::grammar {

namespace {

// The parts of a URI: the scheme with its colon, "//authority", and the path. The fragment is left out.
struct Uri {
  std::string_view scheme, authority, path;
};

Uri split(std::string_view uri) {
  Uri out;
  const auto colon = uri.find(':');
  if (colon != std::string_view::npos && uri.find('/') > colon) {
    out.scheme = uri.substr(0, colon + 1);
    uri.remove_prefix(colon + 1);
  }
  if (uri.starts_with("//")) {
    const auto end = std::min(uri.find('/', 2), uri.size());
    out.authority = uri.substr(0, end);
    uri.remove_prefix(end);
  }
  out.path = uri;
  return out;
}

std::string without_dots(std::string_view path) {
  std::vector<std::string_view> parts;
  const bool rooted = path.starts_with('/');
  while (!path.empty()) {
    const auto end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (part != "." && !(part.empty() && parts.empty())) {
      parts.push_back(part);
    }
  }
  std::string out = rooted ? "/" : "";
  for (std::size_t i = 0; i < parts.size(); ++i) out += (i > 0 ? "/" : "") + std::string(parts[i]);
  return out;
}

std::string resolve(std::string_view base, std::string_view reference) {
  if (reference.empty()) return std::string(base);
  const Uri r = split(reference), b = split(base);
  if (!r.scheme.empty()) return std::string(reference);
  if (!r.authority.empty()) return std::string(b.scheme) + std::string(reference);
  std::string path(r.path);
  if (!path.starts_with('/')) {
    const auto slash = b.path.rfind('/');
    path = std::string(slash == std::string_view::npos ? (b.authority.empty() ? "" : "/") : b.path.substr(0, slash + 1)) + path;
  }
  return std::string(b.scheme) + std::string(b.authority) + without_dots(path);
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr == text.data() + i + 3) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// Keywords whose value is a schema or a list of schemas. The next list: keywords whose value is an object of schemas by name.
constexpr std::array<std::string_view, 15> kSchemas = {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "items", "prefixItems",
                                                       "additionalItems", "unevaluatedItems", "contains", "additionalProperties",
                                                       "unevaluatedProperties", "propertyNames"};
constexpr std::array<std::string_view, 6> kNamedSchemas = {"$defs", "definitions", "properties", "patternProperties", "dependentSchemas",
                                                           "dependencies"};

template <class List>
bool is_one_of(const List& list, std::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

const Json* at_pointer(const Json* node, std::string_view pointer) {
  while (node != nullptr && !pointer.empty()) {
    if (pointer[0] != '/') return nullptr;
    pointer.remove_prefix(1);
    const auto end = std::min(pointer.find('/'), pointer.size());
    std::string key;
    for (std::size_t i = 0; i < end; ++i) {
      if (pointer[i] == '~' && i + 1 < end) {
        key += pointer[++i] == '1' ? '/' : '~';
      } else {
        key += pointer[i];
      }
    }
    pointer.remove_prefix(end);
    if (const Json::Array* items = node->elements()) {
      std::size_t index = 0;
      const auto [stop, error] = std::from_chars(key.data(), key.data() + key.size(), index);
      node = error == std::errc() && stop == key.data() + key.size() && index < items->size() ? &(*items)[index] : nullptr;
    } else {
      node = node->find(key);
    }
  }
  return node;
}

}  // namespace

References::References(const Json& root, Draft draft) : draft_(draft) {
  targets_.emplace("", &root);
  walk(root, 0);
  // Unknown keywords may contain schemas. Such schemas get only names (URIs, anchors) that no other schema has.
  while (!unknown_.empty()) {
    const auto [node, base] = unknown_.back();
    unknown_.pop_back();
    walk(*node, base);
  }
}

void References::walk(const Json& node, std::uint32_t base) {
  if (node.type() == Json::Type::object) {
    base = name(node, base);
    for (const auto& [key, value] : members_of(node)) {
      if (key == "enum" || key == "const") continue;
      if (is_one_of(kSchemas, key)) {
        walk(value, base);
      } else if (is_one_of(kNamedSchemas, key)) {
        base_of_.emplace(&value, base);
        for (const auto& [own, schema] : members_of(value)) walk(schema, base);
      } else {
        unknown_.emplace_back(&value, base);
      }
    }
  }
  for (const Json& item : items_of(node)) walk(item, base);
  base_of_.emplace(&node, base);
}

// Registers the names of a schema ($id, $anchor). Returns the index of the base URI that applies inside of it.
std::uint32_t References::name(const Json& node, std::uint32_t base) {
  const Json* id = node.find(draft_ == Draft::draft4 ? "id" : "$id");
  const Json* ref = node.find("$ref");
  // In older drafts a $ref makes the $id beside it void.
  const bool hidden = draft_ != Draft::draft2020 && ref != nullptr && ref->string() != nullptr;
  if (id != nullptr && id->string() != nullptr && !hidden) {
    std::string_view text = *id->string();
    const auto hash = text.find('#');
    const std::string_view anchor = hash == std::string_view::npos ? "" : text.substr(hash + 1);
    text = text.substr(0, hash);
    // In draft 7 and older, "$id": "#name" is an anchor.
    if (!anchor.empty()) targets_.emplace(bases_[base] + "#" + std::string(anchor), &node);
    if (!text.empty()) {
      bases_.push_back(resolve(bases_[base], text));
      base = static_cast<std::uint32_t>(bases_.size() - 1);
      targets_.emplace(bases_[base], &node);
    }
  }
  for (const char* key : {"$anchor", "$dynamicAnchor"}) {
    const Json* anchor = node.find(key);
    if (anchor != nullptr && anchor->string() != nullptr) targets_.emplace(bases_[base] + "#" + *anchor->string(), &node);
  }
  return base;
}

const Json* References::find(const Json& from, std::string_view reference) const {
  const auto known = base_of_.find(&from);
  const std::string& base = bases_[known == base_of_.end() ? 0 : known->second];
  const auto hash = reference.find('#');
  const std::string uri = resolve(base, reference.substr(0, hash));
  const std::string fragment = hash == std::string_view::npos ? "" : percent_decoded(reference.substr(hash + 1));
  const Json* target = nullptr;
  if (const auto resource = targets_.find(uri); resource != targets_.end()) target = resource->second;
  if (!fragment.empty() && fragment[0] != '/') {
    const auto anchor = targets_.find(uri + "#" + fragment);
    target = anchor == targets_.end() ? nullptr : anchor->second;
  } else {
    target = at_pointer(target, fragment);
  }
  if (target == nullptr) {
    fail(ErrorCode::unsupported, fmt::format("$ref to '{}', which is not in this document", reference));
  }
  return target;
}

}  // namespace tessera::grammar

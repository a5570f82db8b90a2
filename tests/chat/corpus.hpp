// What the chat tests read: conversations and goldens beside them, templates and vocabularies beside the project.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tessera/chat/chat_template.hpp>

namespace tessera::tests {

inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string chat_file(const std::string& name) { return slurp(std::string(TESSERA_SOURCE_DIR) + "/tests/chat/" + name); }

inline std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

struct NamedTemplate {
  std::string name;
  std::string source;
  SpecialTexts special;
};

// Empty if the folder is not there.
inline std::vector<NamedTemplate> shared_templates() {
  const std::string folder = std::string(TESSERA_SHARED_DIR) + "/templates/";
  std::vector<NamedTemplate> out;
  if (!std::filesystem::exists(folder + "tokenizer_configs.json")) return out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".jinja") continue;
    out.push_back({entry.path().filename(), slurp(entry.path()), {.bos = "<s>", .eos = "</s>"}});
  }
  const auto configs = Json::parse(slurp(folder + "tokenizer_configs.json"));
  if (!configs) return {};
  for (const auto& [name, config] : *configs->members()) {
    const auto token = [&, &value = config](const char* key) -> std::optional<std::string> {
      const Json* text = value.find(key);
      if (text == nullptr || text->string() == nullptr) return std::nullopt;
      return *text->string();
    };
    const SpecialTexts special{token("bos_token"), token("eos_token"), token("pad_token"), token("unk_token")};
    const Json& sources = *config.find("chat_template");
    if (sources.string() != nullptr) {
      out.push_back({name + ":default", *sources.string(), special});
    } else {
      for (const auto& [kind, source] : *sources.members()) out.push_back({name + ":" + kind, *source.string(), special});
    }
  }
  return out;
}

inline std::vector<Json> conversations() {
  const auto parsed = Json::parse(chat_file("conversations.json"));
  return parsed ? *parsed->elements() : std::vector<Json>{};
}

inline constexpr LocalTime kNow{2026, 11, 24, 9, 5, 7};  // make_goldens.py has the same

// "bytes:hash" as in golden/renders.txt.
inline std::string golden_field(const Result<RenderedText>& rendered) {
  if (!rendered) return "-";
  const std::string text = rendered->text();
  std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return fmt::format("{}:{:016x}", text.size(), hash);
}

}  // namespace tessera::tests

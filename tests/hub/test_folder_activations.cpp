// Folders that say how the inputs of products are rounded: logits beside a forward pass in float64 that rounds in the same way, the families'
// names, the same bits in any batch, and what is refused. tests/golden/make_activation_folders.py makes the folders.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "hub/folder.hpp"

namespace test_folder_activations {

using namespace tessera;
using namespace tessera::test;
namespace fs = std::filesystem;

fs::path activation_folder(std::string_view name) { return golden_dir() / "activations" / name; }

EngineOptions rounding(Numerics numerics, Activations activations = Activations::as_the_model_says) {
  return {.tokenizer = TokenizerUse::none, .numerics = numerics, .activations = activations, .threads = 2};
}

std::vector<float> last_logits(const fs::path& folder, const EngineOptions& options, std::size_t count) {
  const Engine engine = must(Engine::load(folder, options));
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  const auto tokens = read_tokens(folder / "tokens.txt");
  const auto logits = all_logits(session, tokens, tokens.size());
  return {logits.end() - static_cast<std::ptrdiff_t>(count), logits.end()};
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  float difference = 0.0f;
  for (std::size_t i = 0; i < a.size(); ++i) difference = std::max(difference, std::fabs(a[i] - b[i]));
  return difference;
}

// A folder, and how the family of its products ends.
struct RoundedFolder {
  std::string_view name, family;
};
constexpr RoundedFolder kFolders[] = {
    {"w8a8-token", "int8 of int8-token"},       {"w8a8-tensor", "int8 of int8-tensor"},
    {"w8a8-zero", "f32 of int8-zero-token"},    {"w8a8-zero-tensor", "f32 of int8-zero-tensor"},
    {"w4a8", "int8 of int8-token"},             {"w4a8-fp8", "f32 of fp8-token"},
    {"fp8-token", "f32 of fp8-token"},          {"fp8-tensor", "f32 of fp8-tensor"},
    {"fp8-group", "f32 of fp8-group32"}};

TEST_CASE("inputs of products are rounded as the folder says if asked for", "[hub]") {
  for (const auto& [name, family] : kFolders) {
    DYNAMIC_SECTION(name) {
      const fs::path folder = activation_folder(name);
      const auto rounded = read_floats(folder / "logits.f32"), plain = read_floats(folder / "logits-plain.f32");
      const float effect = largest_difference(rounded, plain);
      const auto difference = [&](const EngineOptions& options, const std::vector<float>& from) {
        return largest_difference(last_logits(folder, options, from.size()), from);
      };
      CHECK(difference(rounding(Numerics::reference, Activations::automatic), plain) <= 1e-4f);
      CHECK(difference(rounding(Numerics::reference), rounded) <= 1e-4f);
      // Another order of sums moves a few numbers by a whole step of 8 bits.
      for (const Numerics numerics : {Numerics::automatic, Numerics::bf16, Numerics::fastest, Numerics::invariant}) {
        CAPTURE(to_string(numerics), effect);
        CHECK(difference(rounding(numerics), rounded) <= 0.25f * effect);
      }
      CHECK(effect > 1e-2f);
    }
  }
}

TEST_CASE("explain() names the rounding of inputs, and saved sessions do not go on without it", "[hub]") {
  for (const auto& [name, family] : kFolders) {
    DYNAMIC_SECTION(name) {
      const Engine engine = must(Engine::load(activation_folder(name), rounding(Numerics::automatic)));
      bool found = false;
      for (const KernelUse& use : must(engine.explain())) found = found || use.family.ends_with(family);
      CHECK(found);
    }
  }
  const Engine with = must(Engine::load(activation_folder("w8a8-token"), rounding(Numerics::automatic)));
  const Engine without = must(Engine::load(activation_folder("w8a8-token"), rounding(Numerics::automatic, Activations::automatic)));
  Session session = must(with.session({}));
  REQUIRE(session.append(std::vector<Token>{1, 2, 3}));
  std::vector<std::byte> saved;
  REQUIRE(session.save([&](std::span<const std::byte> bytes) { return saved.insert(saved.end(), bytes.begin(), bytes.end()), Status(); }));
  CHECK(with.restore(saved));
  const auto restored = without.restore(saved);
  REQUIRE(!restored);
  CHECK(restored.error().message().find("other numerics") != std::string::npos);
}

TEST_CASE("rounded inputs give the same bits whatever is computed with them", "[hub]") {
  for (const auto& [name, family] : kFolders) {
    for (const Numerics numerics : {Numerics::automatic, Numerics::bf16, Numerics::invariant, Numerics::reference}) {
      DYNAMIC_SECTION(name << ", " << to_string(numerics)) {
        const auto tokens = read_tokens(activation_folder(name) / "tokens.txt");
        EngineOptions options = rounding(numerics);
        const Engine engine = must(Engine::load(activation_folder(name), options));
        Session whole = must(engine.session({})), single = must(engine.session({}));
        const auto expected = all_logits(whole, tokens, tokens.size());
        CHECK(all_logits(single, tokens, 1) == expected);
        options.ranks = 2;
        const Engine ranks = must(Engine::load(activation_folder(name), options));
        Session divided = must(ranks.session({}));
        CHECK(all_logits(divided, tokens, 7) == expected);
      }
    }
  }
}

TEST_CASE("a rounding that is not computed, or whose scales are wrong, is refused", "[hub]") {
  const auto refused = [](const fs::path& folder) {
    const auto engine = Engine::load(folder, rounding(Numerics::automatic));
    return engine ? std::string() : engine.error().text();
  };
  const auto changed = [](std::string_view name) { return ChangedFolder("../activations/" + std::string(name)); };
  {
    ChangedFolder folder = changed("w8a8-token");
    folder.replace("config.json", "\"dynamic\": true", "\"dynamic\": false");
    folder.replace("config.json", "\"strategy\": \"token\"", "\"strategy\": \"tensor\"");
    const std::string text = refused(folder.path());
    CAPTURE(text);
    CHECK(text.find("input_scale (or activation_scale) is missing") != std::string::npos);
  }
  const std::pair<std::string_view, std::string_view> options[] = {
      {"\"num_bits\": 8,\n     \"type\": \"int\",\n     \"symmetric\": true,\n     \"dynamic\"", "\"num_bits\": 4,\n     \"type\": \"int\",\n     \"symmetric\": true,\n     \"dynamic\""},
      {"\"strategy\": \"token\"", "\"strategy\": \"tensor\""}, {"\"dynamic\": true", "\"dynamic\": \"local\""}};
  const std::string_view errors[] = {"input_activations.num_bits is 4", "input_activations.strategy is tensor", "input_activations.dynamic is local"};
  for (std::size_t i = 0; i < std::size(options); ++i) {
    ChangedFolder folder = changed("w8a8-token");
    folder.replace("config.json", options[i].first, options[i].second);
    const std::string text = refused(folder.path());
    CAPTURE(text);
    CHECK(text.find(errors[i]) != std::string::npos);
    CHECK(text.find("choose activations = automatic") != std::string::npos);
    CHECK(problem(folder.path()).empty());  // the default does not need it
  }
}

// Returns how many matrices of the engine round their inputs in a way.
int matrices_that_round(const fs::path& folder, std::string_view family) {
  const Engine engine = must(Engine::load(folder, rounding(Numerics::automatic)));
  constexpr std::string_view kLinear = "linear (";
  int count = 0;
  for (const KernelUse& use : must(engine.explain())) {
    if (use.operation.starts_with(kLinear) && use.family.ends_with(family)) count += std::stoi(use.operation.substr(kLinear.size()));
  }
  return count;
}

TEST_CASE("the groups of a folder say which layers round their inputs", "[hub]") {
  const std::string_view kLinear = "\"Linear\"", kGroups = "\"config_groups\": {";
  // A group for all layers, in 4 bits, which tessera does not compute.
  const std::string other = R"("config_groups": {"group_1": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel"},
    "input_activations": {"num_bits": 4, "type": "int", "dynamic": true, "strategy": "token"}},)";
  const auto refused = [](const fs::path& folder) {
    const auto engine = Engine::load(folder, rounding(Numerics::automatic));
    return engine ? std::string() : engine.error().text();
  };
  ChangedFolder folder("../activations/w8a8-token");
  CHECK(matrices_that_round(folder.path(), "int8-token") == 7);
  SECTION("a pattern") {
    folder.replace("config.json", kLinear, R"("re:.*self_attn.*")");
    CHECK(matrices_that_round(folder.path(), "int8-token") == 4);
  }
  SECTION("a pattern is matched from the name's beginning") {
    folder.replace("config.json", kLinear, R"("re:layers.*")");
    CHECK(matrices_that_round(folder.path(), "int8-token") == 0);
  }
  SECTION("a name comes before a class") {
    folder.replace("config.json", kLinear, R"("re:model.*")");
    folder.replace("config.json", kGroups, other);
    CHECK(matrices_that_round(folder.path(), "int8-token") == 7);
    folder.replace("config.json", R"("re:model.*")", R"("model.layers.0.mlp.up_proj")");
    CHECK(refused(folder.path()).find("input_activations.num_bits is 4") != std::string::npos);
  }
  SECTION("two groups for one class") {
    folder.replace("config.json", kGroups, other);
    CHECK(refused(folder.path()).find("round their inputs in several ways") != std::string::npos);
  }
  SECTION("what is not understood is refused by its key") {
    folder.replace("config.json", kLinear, R"("LlamaAttention")");
    CHECK(refused(folder.path()).find("config_groups: targets has the class LlamaAttention") != std::string::npos);
    folder.replace("config.json", R"("LlamaAttention")", R"("re:(")");
    CHECK(refused(folder.path()).find("is no regular expression") != std::string::npos);
    CHECK(problem(folder.path()).empty());
  }
}

TEST_CASE("a folder of mixed precision says of each layer how its inputs are rounded", "[hub]") {
  ChangedFolder folder("../activations/fp8-tensor");
  CHECK(matrices_that_round(folder.path(), "fp8-tensor") == 7);
  folder.replace("config.json", R"("quant_algo": "FP8")", R"("quant_algo": "MIXED_PRECISION", "quantized_layers": {"model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"}})");
  CHECK(matrices_that_round(folder.path(), "fp8-tensor") == 1);
  folder.replace("config.json", "self_attn.q_proj", "self_attn.other");
  CHECK(matrices_that_round(folder.path(), "fp8-tensor") == 0);
}

// Gives the output matrices of recurrent layers in FP8, with a scale for each block of `block` outputs and inputs. All numbers are 0.
void make_outputs_fp8(ChangedFolder& folder, std::uint64_t block) {
  const std::string file = text_of_file(folder.path() / "model.safetensors");
  std::uint64_t size = 0;
  std::memcpy(&size, file.data(), sizeof size);
  const Json header = *Json::parse(std::string_view(file).substr(sizeof size, size));
  Json changed = Json::object();
  std::string data;
  const auto add = [&](const std::string& name, std::string_view type, const Json& shape, std::string_view bytes) {
    Json entry = Json::object();
    entry.set("dtype", type);
    entry.set("shape", shape);
    entry.set("data_offsets", Json::Array{Json(static_cast<std::int64_t>(data.size())), Json(static_cast<std::int64_t>(data.size() + bytes.size()))});
    changed.set(name, std::move(entry));
    data.append(bytes);
  };
  for (const auto& [name, entry] : *header.members()) {
    if (name == "__metadata__") continue;
    const Json& shape = *entry.find("shape");
    const auto& offsets = *entry.find("data_offsets")->elements();
    const std::string_view bytes = std::string_view(file).substr(sizeof size + size + static_cast<std::size_t>(*offsets[0].integer()),
                                                                 static_cast<std::size_t>(*offsets[1].integer() - *offsets[0].integer()));
    if (!name.ends_with("linear_attn.out_proj.weight")) {
      add(name, *entry.find("dtype")->string(), shape, bytes);
      continue;
    }
    const auto outputs = static_cast<std::uint64_t>(*(*shape.elements())[0].integer()), inputs = static_cast<std::uint64_t>(*(*shape.elements())[1].integer());
    const std::uint64_t rows = (outputs + block - 1) / block, columns = (inputs + block - 1) / block;
    add(name, "F8_E4M3", shape, std::string(outputs * inputs, '\0'));
    const std::vector<float> ones(rows * columns, 1.0f);
    add(name + "_scale_inv", "F32", Json::Array{Json(static_cast<std::int64_t>(rows)), Json(static_cast<std::int64_t>(columns))},
        std::string_view(reinterpret_cast<const char*>(ones.data()), ones.size() * sizeof(float)));
  }
  std::string text = changed.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  size = text.size();
  folder.write("model.safetensors", std::string(reinterpret_cast<const char*>(&size), sizeof size) + text + data);
  folder.replace("config.json", "{", "{\"quantization_config\": {\"quant_method\": \"fp8\", \"activation_scheme\": \"dynamic\", \"weight_block_size\": [" +
                                         std::to_string(block) + ", " + std::to_string(block) + "]},");
}

TEST_CASE("groups of inputs that would be others, because heads are in another order, are refused", "[hub]") {
  const std::uint64_t head = 20;  // linear_value_head_dim of the folder
  {
    ChangedFolder folder("qwen35");
    make_outputs_fp8(folder, 2 * head);
    const auto engine = Engine::load(folder.path(), rounding(Numerics::automatic));
    REQUIRE_FALSE(engine);
    CAPTURE(engine.error().text());
    CHECK(engine.error().text().find("its inputs are in another order here, heads of 20 inputs, so the groups of 40 inputs") != std::string::npos);
    CHECK(problem(folder.path()).empty());
  }
  ChangedFolder folder("qwen35");
  make_outputs_fp8(folder, head / 2);
  const auto engine = Engine::load(folder.path(), rounding(Numerics::automatic));
  CHECK((engine ? "" : engine.error().text()) == "");
}

}  // namespace test_folder_activations

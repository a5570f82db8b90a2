// tessera-inspect --kv-table as its users run it, against figures worked out by hand and against Engine::plan.
#include "kv/held_types.hpp"
#include "program.hpp"

#include <cstdint>
#include <fstream>

#include <nlohmann/json.hpp>

#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/tessera.hpp>

#include "kv/codecs.hpp"

namespace test_kv_table {

using namespace tessera::tests::cli;
using tessera::DType;

namespace {

using Json = nlohmann::json;

const std::string kInspect = TESSERA_BIN_DIR "/tessera-inspect";
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
const Args kLlama3 = {"--layers", "32", "--kv-heads", "8", "--head-dim", "128"};  // Llama-3-8B

bool lacks_inspect() { return lacks(kInspect, "tessera-inspect (not built)"); }

Outcome inspect(Args args, const Args& more = {}) {
  args.insert(args.begin(), "--kv-table");
  args.insert(args.end(), more.begin(), more.end());
  return run_program(kInspect, args);
}

Json table(Args args, const Args& more = {}) {
  args.emplace_back("--json");
  const Outcome outcome = inspect(std::move(args), more);
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  REQUIRE(outcome.err.empty());
  return Json::parse(outcome.out);
}

Json type_of(const Json& table, const std::string& name) {
  for (const Json& type : table.at("types")) {
    if (type.at("type") == name) return type;
  }
  FAIL("no type " << name);
  return {};
}

// The only context's cell.
Json cell(const Json& table, const std::string& name) {
  const Json contexts = type_of(table, name).at("contexts");
  REQUIRE(contexts.size() == 1);
  return contexts.front();
}

// A file of metadata alone, with the fields of a Llama that `change` may replace.
template <class Change>
std::string model_of(const std::string& path, const std::string& architecture, Change change) {
  tessera::GgufWriter writer;
  REQUIRE(writer.set_string("general.architecture", architecture));
  const auto key = [&](const std::string& name) { return architecture + "." + name; };
  REQUIRE(writer.set(key("block_count"), std::uint32_t{4}));
  REQUIRE(writer.set(key("embedding_length"), std::uint32_t{512}));
  REQUIRE(writer.set(key("context_length"), std::uint32_t{3000}));
  REQUIRE(writer.set(key("attention.head_count"), std::uint32_t{8}));
  change(writer, key);
  const auto done = writer.write_file(path, [](auto, const auto&) -> tessera::Status { return {}; });
  REQUIRE(done);
  return path;
}

}  // namespace

TEST_CASE("--kv-table counts the zero that a key of an odd dimension is paired with") {
  if (lacks_inspect()) return;
  const Json all = table({"--layers", "1", "--kv-heads", "1", "--head-dim", "5"}, {"--context", "32"});
  CHECK(type_of(all, "F32").at("token_bytes") == 4 * (5 + 5));
  CHECK(type_of(all, "F16").at("token_bytes") == 2 * (6 + 5));
}

TEST_CASE("--kv-table says the bytes of Llama-3-8B, and what fits 80 GiB") {
  if (lacks_inspect()) return;
  const Json all = table(kLlama3, {"--weights-bytes", "16GB", "--users", "64", "--context", "8k", "--memory", "80GiB"});
  REQUIRE(all.at("types").size() == tessera::kv_types().size());
  CHECK(all.at("memory_bytes") == 80 * kGiB);
  CHECK(all.at("weights_bytes") == 16'000'000'000u);

  struct Expected {
    std::string type;
    std::uint64_t token_bytes, largest_users, largest_context;
    bool fits;
  };
  // 2 x 32 layers x 8 heads x (128 elements, for fewer than 16 bits also a scale of 4 bytes, for INT4 8 multipliers) a token; 69,899,345,920 bytes for users.
  for (const auto& [type, token_bytes, users, context, fits] :
       {Expected{"F32", 262144, 32, 4160, false}, Expected{"F16", 131072, 65, 8320, true},
        Expected{"BF16", 131072, 65, 8320, true}, Expected{"INT8", 67584, 126, 16160, true},
        Expected{"FP8", 67584, 126, 16160, true}, Expected{"K8V4", 53248, 160, 20480, true},
        Expected{"INT4", 38912, 219, 28064, true}}) {
    INFO(type);
    CHECK(type_of(all, type).at("token_bytes") == token_bytes);
    CHECK(cell(all, type).at("context") == 8192);
    CHECK(cell(all, type).at("user_bytes") == 8192 * token_bytes);
    CHECK(cell(all, type).at("need_bytes") == 64 * 8192 * token_bytes + 16'000'000'000u);
    CHECK(cell(all, type).at("fits") == fits);
    CHECK(cell(all, type).at("largest_users") == users);
    CHECK(type_of(all, type).at("largest_context") == context);
  }
}

TEST_CASE("--kv-table answers yes up to the last byte") {
  if (lacks_inspect()) return;
  const Args question = {"--users", "64", "--context", "8192", "--kv-dtype", "f16", "--memory"};
  const auto with_memory = [&](std::uint64_t bytes) {
    Args more = question;
    more.push_back(std::to_string(bytes));
    return table(kLlama3, more);
  };
  const Json exact = with_memory(64 * kGiB), less = with_memory(64 * kGiB - 1);
  CHECK(exact.at("types").size() == 1);
  CHECK(cell(exact, "F16").at("need_bytes") == 64 * kGiB);
  CHECK(cell(exact, "F16").at("fits") == true);
  CHECK(cell(exact, "F16").at("largest_users") == 64);
  CHECK(type_of(exact, "F16").at("largest_context") == 8192);
  CHECK(cell(less, "F16").at("fits") == false);
  CHECK(cell(less, "F16").at("largest_users") == 63);
  CHECK(type_of(less, "F16").at("largest_context") == 8192 - 32);

  const Json nothing = table(kLlama3, {"--weights-bytes", "2GiB", "--context", "1k", "--memory", "1GiB"});
  CHECK(cell(nothing, "INT8").at("largest_users") == 0);
  CHECK(type_of(nothing, "INT8").at("largest_context") == 0);
  CHECK(cell(nothing, "INT8").at("fits") == false);
}

TEST_CASE("--kv-table shows several contexts, and without a memory only bytes") {
  if (lacks_inspect()) return;
  const Json all = table(kLlama3);
  const Json contexts = type_of(all, "F16").at("contexts");
  REQUIRE(contexts.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(contexts[i].at("context") == 1024u << i);
    CHECK(contexts[i].at("user_bytes") == (std::uint64_t{1} << (27 + i)));
    CHECK_FALSE(contexts[i].contains("fits"));
    CHECK_FALSE(contexts[i].contains("largest_users"));
  }
  CHECK_FALSE(type_of(all, "F16").contains("largest_context"));
  CHECK(type_of(table(kLlama3, {"--context", "100,2k"}), "F16").at("contexts")[1].at("context") == 2048);
}

TEST_CASE("--kv-table counts whole pages") {
  if (lacks_inspect()) return;
  for (const auto& [page_tokens, tokens] : {std::pair{"16", 112}, {"32", 128}, {"64", 128}}) {
    const Json of = table(kLlama3, {"--context", "100", "--page-tokens", page_tokens});
    CHECK(cell(of, "F16").at("user_bytes") == tokens * 131072);
  }
  // A block of 16 tokens of 6 bytes and a scale is 160 bytes, and begins on a multiple of 64.
  const Args tiny = {"--layers", "1", "--kv-heads", "1", "--head-dim", "6"};
  const Json odd = table(tiny, {"--page-tokens", "16", "--context", "16"});
  CHECK(cell(odd, "INT8").at("user_bytes") == 2 * 192);
}

TEST_CASE("--kv-table divides heads and weights among devices") {
  if (lacks_inspect()) return;
  const Args llama_70b = {"--layers", "80", "--kv-heads", "8", "--head-dim", "128", "--weights-bytes", "141000000001"};
  for (const auto& [tp, heads, weights] : {std::tuple{"1", 8u, 141'000'000'001u}, {"3", 3u, 47'000'000'001u},
                                           {"8", 1u, 17'625'000'001u}, {"16", 1u, 8'812'500'001u}}) {
    const Json of = table(llama_70b, {"--tp", tp});
    CHECK(type_of(of, "F16").at("token_bytes") == 80 * heads * 2 * 128 * 2);
    CHECK(type_of(of, "INT8").at("token_bytes") == 80 * heads * 2 * 132);
    CHECK(of.at("weights_bytes") == weights);
  }
  CHECK(table(llama_70b, {"--tp", "8"}).at("notes").empty());
  CHECK(table(llama_70b, {"--tp", "3"}).at("notes").size() == 1);
  CHECK(table(llama_70b, {"--tp", "16"}).at("notes").dump().find("replicated") != std::string::npos);
}

TEST_CASE("--kv-table lets a window bound what a user holds") {
  if (lacks_inspect()) return;
  constexpr std::uint64_t kToken = 131072;
  const auto user_bytes = [](const Args& more) -> std::uint64_t {
    return cell(table(kLlama3, more), "F16").at("user_bytes");
  };
  // 4096 tokens that begin within a page touch 129 pages of 32, and one more is kept for roll-backs.
  CHECK(user_bytes({"--window", "4096", "--context", "32k"}) == 130 * 32 * kToken);
  CHECK(user_bytes({"--window", "4k", "--context", "32k", "--page-tokens", "64"}) == 66 * 64 * kToken);
  CHECK(user_bytes({"--window", "1", "--context", "32k"}) == 2 * 32 * kToken);
  CHECK(user_bytes({"--window", "4096", "--context", "4096"}) == 4096 * kToken);
  CHECK(user_bytes({"--window", "4096", "--context", "1k"}) == 1024 * kToken);
  CHECK(user_bytes({"--window", "0", "--context", "32k"}) == 4 * kGiB);
  const Json any = table(kLlama3, {"--window", "4096", "--memory", "1GiB", "--kv-dtype", "f16"});
  CHECK(type_of(any, "F16").at("largest_context").is_null());
  const Json few = table(kLlama3, {"--window", "4096", "--memory", "256MiB", "--kv-dtype", "f16"});
  CHECK(type_of(few, "F16").at("largest_context") == 2048);
}

TEST_CASE("--kv-table agrees with Engine::plan on every architecture") {
  if (lacks_inspect()) return;
  std::size_t compared = 0, with_states = 0, latent = 0;
  std::ifstream manifest(kGolden + "manifest.txt");
  for (std::string line; std::getline(manifest, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::string name = line.substr(0, line.find(' '));
    INFO(name);
    const std::string path = kGolden + name + ".gguf";
    const auto file = tessera::ModelFile::open(path);
    REQUIRE(file);
    const Json all = table({path, "--window", "0"});
    const bool has_states = all.contains("state_bytes");
    with_states += has_states ? 1 : 0;
    for (const Json& type : all.at("types")) {
      tessera::EngineOptions options;
      options.sliding_window = 0;
      options.kv.kind = tessera::KvKind::paged;
      for (const DType dtype : tessera::test::kKvTypes) {
        if (to_string(dtype) == type.at("type").get<std::string>()) options.kv.dtype = dtype;
      }
      const auto plan = tessera::Engine::plan(*file, options);
      if (!plan && plan.error().code() == tessera::ErrorCode::unsupported) continue;
      REQUIRE(plan);
      ++compared;
      CHECK(type.at("token_bytes") == plan->kv_per_token);
      CHECK(type.at("contexts").back().at("context") == plan->context);
      const std::uint64_t user = type.at("contexts").back().at("user_bytes");
      if (has_states) {  // the plan counts whole slabs of them, and of its pages
        CHECK(all.at("state_bytes") == plan->kv_layout.state_bytes());
        CHECK(user <= plan->kv);
        CHECK(plan->kv - user < 2 * all.at("state_bytes").get<std::uint64_t>());
      } else {
        CHECK(user == plan->kv);
      }
      CHECK(all.at("weights_bytes") == plan->weights);
    }
    if (!all.at("layers").front().at("values_in_keys")) continue;
    ++latent;  // the saving is said
    CHECK(all.at("notes").dump().find("latent attention: ") != std::string::npos);
  }
  CHECK(compared >= 200);
  CHECK(with_states >= 8);
  CHECK(latent >= 5);
}

TEST_CASE("--kv-table counts layers at the ends in a type of their own") {
  if (lacks_inspect()) return;
  // Of 32 layers of 2,112 bytes a token in INT8 and 1,216 in INT4.
  const Json mixed = table(kLlama3, {"--kv-wide", "int8:2+1", "--context", "8k"});
  CHECK(type_of(mixed, "INT4").at("token_bytes") == 29 * 1216 + 3 * 2112);
  CHECK(type_of(mixed, "INT8").at("token_bytes") == 32 * 2112);
  CHECK(mixed.at("layers").size() == 2);
  CHECK(type_of(table(kLlama3, {"--kv-wide", "int8:16"}), "F32").at("token_bytes") == 32 * 2112);
  CHECK(inspect(kLlama3, {"--kv-wide", "int8:16+17"}).status == 2);
  // Layers that differ, read one by one: as the engine's plan has it.
  for (const std::string name : {"llama-gqa", "gemma3", "qwen3"}) {
    const std::string path = kGolden + name + ".gguf";
    const auto file = tessera::ModelFile::open(path);
    REQUIRE(file);
    for (const auto& [first, last] : {std::pair{1u, 0u}, {0u, 1u}, {1u, 1u}}) {
      tessera::EngineOptions options;
      options.kv = {.dtype = DType::int4, .wide = {.dtype = DType::f16, .first = first, .last = last}};
      const auto plan = tessera::Engine::plan(*file, options);
      REQUIRE(plan);
      const Json rows = table({path, "--kv-wide", "f16:" + std::to_string(first) + "+" + std::to_string(last)});
      CHECK(type_of(rows, "INT4").at("token_bytes") == plan->kv_per_token);
    }
  }
}

TEST_CASE("--kv-table reads a model's layers one by one, and options replace its numbers") {
  if (lacks_inspect()) return;
  const TemporaryFile file;
  const auto nothing = [](auto&, const auto&) {};
  const Json plain = table({model_of(file.path(), "llama", nothing)});
  CHECK(plain.at("context_limit") == 3000);
  CHECK(type_of(plain, "F16").at("contexts").size() == 3);  // 1k, 2k and the model's own
  CHECK(type_of(plain, "F16").at("contexts")[2].at("context") == 3000);
  CHECK(type_of(plain, "F16").at("token_bytes") == 4 * 8 * 2 * 64 * 2);  // head_count for both, 512 / 8 elements
  CHECK(plain.at("notes").size() == 1);                                 // no tensors: the engine does not run it

  const Json other =
      table({file.path(), "--layers", "2", "--kv-heads", "3", "--head-dim", "10", "--weights-bytes", "5"});
  CHECK(type_of(other, "F16").at("token_bytes") == 2 * 3 * 2 * 10 * 2);
  CHECK(other.at("weights_bytes") == 5);
  const Json endless = table({file.path(), "--memory", "1TiB"});
  CHECK(type_of(endless, "F16").at("largest_context") == 3000);

  // 0: a layer without attention.
  const auto mixed = [](auto& writer, const auto& key) {
    REQUIRE(writer.set_array(key("attention.head_count_kv"), std::vector<std::int32_t>{2, 0, 1, 2}));
    REQUIRE(writer.set(key("attention.key_length"), std::uint32_t{24}));
    REQUIRE(writer.set(key("attention.value_length"), std::uint32_t{16}));
  };
  const Json layers = table({model_of(file.path(), "another", mixed)});
  CHECK(type_of(layers, "F32").at("token_bytes") == (2 + 1 + 2) * (24 + 16) * 4);
  CHECK(type_of(layers, "INT8").at("token_bytes") == (2 + 1 + 2) * (24 + 4 + 16 + 4));
  CHECK(layers.at("layers").size() == 2);
  CHECK(inspect({file.path(), "--layers", "2"}).status == 2);

  const auto windowed = [](auto& writer, const auto& key) {
    REQUIRE(writer.set(key("attention.sliding_window"), std::uint32_t{64}));
  };
  CHECK(table({model_of(file.path(), "llama", windowed)}).at("layers")[0].at("window") == 64);
  CHECK(table({file.path(), "--window", "0"}).at("layers")[0].at("window") == 0);
  // Of Gemma 3's layers every sixth sees everything: of four, none.
  const Json gemma = table({model_of(file.path(), "gemma3", windowed)});
  REQUIRE(gemma.at("layers").size() == 1);
  CHECK(gemma.at("layers")[0].at("window") == 64);
  // As wide as the context it masks nothing.
  const auto wide = [](auto& writer, const auto& key) {
    REQUIRE(writer.set(key("attention.sliding_window"), std::uint32_t{3000}));
  };
  CHECK(table({model_of(file.path(), "llama", wide)}).at("layers")[0].at("window") == 0);
  // One for each layer: layers with the same are counted together.
  const auto each = [](auto& writer, const auto& key) {
    REQUIRE(writer.set_array(key("attention.sliding_window"), std::vector<std::int32_t>{64, 0, 64, 3000}));
  };
  const Json groups = table({model_of(file.path(), "another", each), "--context", "320", "--page-tokens", "32"});
  REQUIRE(groups.at("layers").size() == 2);
  CHECK(groups.at("layers")[0].at("layers") == 2);
  CHECK(groups.at("layers")[0].at("window") == 0);
  CHECK(groups.at("layers")[1].at("layers") == 2);
  CHECK(groups.at("layers")[1].at("window") == 64);
  // 10 pages without a window; with one of 64 tokens 4: two, one that it begins in, and one more.
  const auto token_bytes = type_of(groups, "F16").at("token_bytes").get<std::uint64_t>();
  CHECK(type_of(groups, "F16").at("contexts")[0].at("user_bytes") == (10 + 4) * 32 * token_bytes / 2);
  // A layer with global tokens keeps everything.
  const auto globals = [&](auto& writer, const auto& key) {
    each(writer, key);
    REQUIRE(writer.set_array(key("attention.global_tokens"), std::vector<std::int32_t>{4, 0, 0, 0}));
  };
  CHECK(table({model_of(file.path(), "another", globals)}).at("layers")[0].at("layers") == 3);
  // Of another architecture the window may be of some layers only.
  const Json unknown = table({model_of(file.path(), "another", windowed)});
  CHECK(unknown.at("layers")[0].at("window") == 0);
  CHECK(unknown.at("notes").size() == 2);
}

TEST_CASE("--kv-table refuses a model that contradicts itself") {
  if (lacks_inspect()) return;
  const TemporaryFile file;
  const auto fails = [&](const auto& change, const std::string& words) {
    const Outcome outcome = inspect({model_of(file.path(), "llama", change)});
    INFO(outcome.err);
    CHECK(outcome.status == 1);
    CHECK(outcome.err.starts_with("tessera-inspect: "));
    CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
    CHECK(outcome.err.find(words) != std::string::npos);
  };
  const auto with = [](const std::string& name, std::uint32_t value) {
    return [name, value](auto& writer, const auto& key) { REQUIRE(writer.set(key(name), value)); };
  };
  fails(with("block_count", 0), "llama.block_count");
  fails(with("block_count", 0xffffffffu), "llama.block_count");
  fails(with("attention.head_count", 7), "llama.attention.key_length");
  fails(with("attention.key_length", 0), "llama.attention.key_length");
  fails([](auto& writer, const auto& key) { REQUIRE(writer.set_string(key("attention.head_count"), "eight")); },
        "llama.attention.head_count");
  fails([](auto& writer, const auto& key) {
    REQUIRE(writer.set_array(key("attention.head_count_kv"), std::vector<std::int32_t>{1, 2, 3}));
  }, "llama.attention.head_count_kv");
  fails([](auto& writer, const auto& key) {
    REQUIRE(writer.set_array(key("attention.head_count_kv"), std::vector<std::int32_t>{1, 2, 3, -1}));
  }, "llama.attention.head_count_kv");
  CHECK(inspect({"/no/such/file"}).status == 1);
}

TEST_CASE("--kv-table refuses nonsense with one line that says what to do") {
  if (lacks_inspect()) return;
  struct Case {
    Args args;
    std::string words;
  };
  const auto llama3 = [](const Args& more) {
    Args args = kLlama3;
    args.insert(args.end(), more.begin(), more.end());
    return args;
  };
  const std::string most = "18446744073709551615";
  for (const auto& [args, words] : {
           Case{{}, "--layers, --kv-heads, --head-dim"},
           Case{{"--layers", "32", "--head-dim", "128"}, "needs --kv-heads"},
           Case{{"--layers", "0", "--kv-heads", "8", "--head-dim", "128"}, "0 layers"},
           Case{{"--layers", "32", "--kv-heads", "0", "--head-dim", "128"}, "0 KV heads"},
           Case{{"--layers", "32", "--kv-heads", "8", "--head-dim", "0"}, "0 elements"},
           Case{{"--layers", most, "--kv-heads", "8", "--head-dim", "1"}, "expected 1 to"},
           Case{llama3({"--users", "0"}), "0 users"}, Case{llama3({"--users", "-1"}), "'-1'"},
           Case{llama3({"--tp", "0"}), "0 devices"}, Case{llama3({"--page-tokens", "20"}), "16, 32 or 64"},
           Case{llama3({"--context", "0"}), "0 tokens"}, Case{llama3({"--context", "8q"}), "'8q'"},
           Case{llama3({"--context", "8k,"}), "''"}, Case{llama3({"--memory", "0"}), "0 bytes"},
           Case{llama3({"--memory", "80G"}), "80GiB"}, Case{llama3({"--memory", "lots"}), "'lots'"},
           Case{llama3({"--memory", "1.5.5GiB"}), "'1.5.5GiB'"}, Case{llama3({"--memory", "20000000TiB"}), "64 bits"},
           Case{llama3({"--context", most}), "pass 64 bits"}, Case{llama3({"--users", most}), "pass 64 bits"},
           Case{llama3({"--context", most + "k"}), "such as 8192"},
           Case{{"--layers", "2147483647", "--kv-heads", "2147483647", "--head-dim", "2147483647"}, "pass 64 bits"},
           Case{llama3({"--plan"}), "--plan does not go with --kv-table"},
           Case{{kTiny, "--context", "65"}, "at most 64"}}) {
    const Outcome outcome = inspect(args);
    INFO(words << ": " << outcome.err);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.starts_with("tessera-inspect: "));
    CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
    CHECK(outcome.err.find(words) != std::string::npos);
  }
  CHECK(run_program(kInspect, {kTiny, "--users", "3"}).status == 2);
}

TEST_CASE("--kv-table reads sizes as people write them") {
  if (lacks_inspect()) return;
  for (const auto& [text, bytes] :
       {std::pair<std::string, std::uint64_t>{"80GiB", 80 * kGiB}, {"80gb", 80'000'000'000}, {"512MiB", kGiB / 2},
        {"1.5 GiB", kGiB + kGiB / 2}, {"16.06GB", 16'060'000'000}, {"2TB", 2'000'000'000'000}, {"7KiB", 7168},
        {"4096", 4096}, {"4096B", 4096}, {"18446744073709551615", ~std::uint64_t{0}}}) {
    INFO(text);
    CHECK(table(kLlama3, {"--memory", text}).at("memory_bytes") == bytes);
  }
}

TEST_CASE("--kv-table shows a table that a person reads") {
  if (lacks_inspect()) return;
  const std::string one =
      inspect(kLlama3, {"--weights-bytes", "16GB", "--users", "64", "--context", "8k", "--memory", "80GiB"}).out;
  INFO(one);
  CHECK(one.find("32 layers of 8 KV heads, 128 elements each\n") != std::string::npos);
  CHECK(one.find("64 users at 8192 tokens\n") != std::string::npos);
  std::istringstream rows(one.substr(one.find("  F16 ")));
  std::string row, words_of_row;
  std::getline(rows, row);
  std::istringstream words_in(row);
  for (std::string word; words_in >> word;) words_of_row += word + ' ';
  CHECK(words_of_row == "F16 131072 1.00 GiB 78.90 GiB yes 65 8320 ");
  const std::string many = inspect(kLlama3, {"--weights-bytes", "16GB", "--users", "64", "--memory", "80GiB"}).out;
  INFO(many);
  for (const char* words : {"128k\n", "64 users and the weights", "46.90 GiB ok", "142.9 GiB no", "users that fit"}) {
    INFO(words);
    CHECK(many.find(words) != std::string::npos);
  }
  std::istringstream lines(many);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 120);

  const Outcome help = run_program(kInspect, {"--help"});
  CHECK(help.status == 0);
  CHECK(help.out.find("--kv-table --layers 32") != std::string::npos);
}

}  // namespace test_kv_table

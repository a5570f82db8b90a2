// Encoders as transformers saves them: vectors of texts and scores of pairs are those of transformers, and do not depend on other texts.
#include <cmath>
#include <sstream>

#include "hub/folder.hpp"

namespace test_hub_encoders {

using namespace tessera;
using namespace tessera::test;
namespace fs = std::filesystem;

namespace {

fs::path encoder(std::string_view name) { return golden_dir() / "encoders" / name; }

std::vector<std::vector<Token>> token_lines(const fs::path& path) {
  std::vector<std::vector<Token>> texts;
  std::istringstream lines(text_of_file(path));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    texts.emplace_back(std::istream_iterator<Token>(numbers), std::istream_iterator<Token>());
  }
  return texts;
}

float largest_difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  float difference = 0.0f;
  for (std::size_t i = 0; i < a.size(); ++i) difference = std::max(difference, std::fabs(a[i] - b[i]));
  return difference;
}

Engine load(const fs::path& folder, Numerics numerics = Numerics::reference) {
  return must(Engine::load(folder, {.tokenizer = TokenizerUse::none, .numerics = numerics, .threads = 2}));
}

}  // namespace

TEST_CASE("vectors of encoders agree with transformers, in every numerics", "[hub]") {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(golden_dir() / "encoders")) {
    ++count;
    for (const Numerics numerics : {Numerics::reference, Numerics::automatic, Numerics::invariant}) {
      DYNAMIC_SECTION(entry.path().filename().string() << ", numerics " << static_cast<int>(numerics)) {
        const Engine engine = load(entry.path(), numerics);
        const auto texts = token_lines(entry.path() / "tokens.txt");
        const Embeddings vectors = must(engine.embed(texts, {.pooling = Pooling::mean, .normalises = false}));
        REQUIRE(vectors.size() == texts.size());
        const float difference = largest_difference(vectors.values(), read_floats(entry.path() / "vectors.f32"));
        INFO("largest difference " << difference);
        CHECK(difference <= 1e-5f);
      }
    }
  }
  CHECK(count >= 6);
}

TEST_CASE("a text's vector has the same bits alone and among others, whatever the threads", "[hub]") {
  const auto texts = token_lines(encoder("bert-wide") / "tokens.txt");
  std::vector<std::vector<Token>> many;
  for (int i = 0; i < 20; ++i) many.insert(many.end(), texts.begin(), texts.end());
  const Engine engine = load(encoder("bert-wide"), Numerics::automatic);
  const Engine single = must(Engine::load(encoder("bert-wide"), {.tokenizer = TokenizerUse::none, .threads = 1, .step_rows = 48}));
  const Embeddings together = must(engine.embed(many)), in_small_steps = must(single.embed(many));
  for (std::size_t i = 0; i < many.size(); ++i) {
    const Embeddings alone = must(engine.embed(std::span(&many[i], 1)));
    CAPTURE(i);
    REQUIRE(std::ranges::equal(alone.row(0), together.row(i)));
    REQUIRE(std::ranges::equal(alone.row(0), in_small_steps.row(i)));
  }
}

TEST_CASE("the options of embeddings do what they say", "[hub]") {
  const Engine engine = load(encoder("bert"));
  const auto texts = token_lines(encoder("bert") / "tokens.txt");
  const Embeddings rows = must(engine.embed(texts, {.pooling = Pooling::none, .normalises = false}));
  const Embeddings mean = must(engine.embed(texts, {.normalises = false})), cls = must(engine.embed(texts, {.pooling = Pooling::cls, .normalises = false}));
  const Embeddings last = must(engine.embed(texts, {.pooling = Pooling::last, .normalises = false}));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    CAPTURE(i);
    REQUIRE(rows.rows(i) == texts[i].size());
    CHECK(rows.tokens(i) == texts[i].size());
    CHECK(std::ranges::equal(rows.row(i, 0), cls.row(i)));
    CHECK(std::ranges::equal(rows.row(i, texts[i].size() - 1), last.row(i)));
    for (std::size_t d = 0; d < mean.dimensions(); ++d) {
      double sum = 0.0;
      for (std::size_t row = 0; row < rows.rows(i); ++row) sum += double{rows.row(i, row)[d]};
      REQUIRE(mean.row(i)[d] == Approx(sum / static_cast<double>(texts[i].size())).epsilon(1e-6));
    }
  }

  SECTION("vectors are cut to their first numbers, then made length 1") {
    const Embeddings few = must(engine.embed(texts, {.dimensions = 8}));
    REQUIRE(few.dimensions() == 8);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      double squares = 0.0, of_mean = 0.0;
      for (std::size_t d = 0; d < 8; ++d) squares += double{few.row(i)[d]} * double{few.row(i)[d]}, of_mean += double{mean.row(i)[d]} * double{mean.row(i)[d]};
      CHECK(squares == Approx(1.0).epsilon(1e-5));
      CHECK(few.row(i)[3] == Approx(mean.row(i)[3] / std::sqrt(of_mean)).epsilon(1e-5));
    }
  }
  SECTION("a text that is too long is cut, read in windows, or refused") {
    const std::vector<Token> text = texts[5];  // 40 tokens
    const std::vector<Token> front(text.begin(), text.begin() + 16), middle(text.begin() + 12, text.begin() + 28), back(text.begin() + 24, text.end());
    const Embeddings cut = must(engine.embed(std::span(&text, 1), {.normalises = false, .most_tokens = 16}));
    CHECK(cut.was_cut(0));
    CHECK(cut.tokens(0) == 16);
    CHECK(std::ranges::equal(cut.row(0), must(engine.embed(std::span(&front, 1), {.normalises = false})).row(0)));
    const auto refused = engine.embed(std::span(&text, 1), {.long_text = LongText::refuse, .most_tokens = 16});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == ErrorCode::invalid_argument);
    CHECK_THAT(refused.error().text(), Catch::Contains("text 0 has 40 tokens, and the model reads 16"));
    const Embeddings windows = must(engine.embed(std::span(&text, 1), {.normalises = false, .long_text = LongText::windows, .overlap = 4, .most_tokens = 16}));
    CHECK_FALSE(windows.was_cut(0));
    const Embeddings parts = must(engine.embed(std::vector{front, middle, back}, {.normalises = false}));
    for (std::size_t d = 0; d < windows.dimensions(); ++d) {
      const double expected = (double{parts.row(0)[d]} + double{parts.row(1)[d]} + double{parts.row(2)[d]}) / 3.0;
      REQUIRE(windows.row(0)[d] == Approx(expected).epsilon(1e-6).margin(1e-7));
    }
  }
  SECTION("calls that make no sense are errors, and the engine goes on") {
    const auto error_of = [&](const EmbedOptions& options, const std::vector<std::vector<Token>>& tokens) {
      const auto vectors = engine.embed(tokens, options);
      return vectors ? std::string() : vectors.error().text();
    };
    CHECK_THAT(error_of({.dimensions = 33}, texts), Catch::Contains("33 dimensions; the model's vectors have 32"));
    CHECK_THAT(error_of({.pooling = Pooling::rank}, texts), Catch::Contains("choose none, mean, cls or last"));
    CHECK_THAT(error_of({}, {{1, 2}, {96}}), Catch::Contains("token 96"));
    CHECK_THAT(error_of({}, {{}}), Catch::Contains("text 0 has no tokens"));
    CHECK_THAT(error_of({.progress = [](std::size_t, std::size_t) { return false; }}, texts), Catch::Contains("stopped after 1 of 7"));
    std::stop_source stop;
    stop.request_stop();
    CHECK_THAT(error_of({.stop = stop.get_token()}, texts), Catch::Contains("stopped"));
    CHECK(error_of({}, texts).empty());
    CHECK(must(engine.embed(std::span<const std::vector<Token>>())).size() == 0);
  }
}

TEST_CASE("a model that writes gives the embeddings of its rows, also of a text of several steps", "[hub]") {
  const fs::path folder = golden_folder("llama-bias");
  const Engine engine = must(Engine::load(folder, {.tokenizer = TokenizerUse::none, .threads = 2, .step_rows = 8}));
  const std::vector<Token> tokens = read_tokens(folder / "tokens.txt");
  REQUIRE(tokens.size() > 8);
  Session session = must(engine.session());
  Batch batch;
  for (const Token token : tokens) must(batch.add(session, Row{.token = token, .want = Want::embedding}));
  const Outputs expected = must(engine.forward(batch));
  const Embeddings rows = must(engine.embed(std::span(&tokens, 1), {.pooling = Pooling::none, .normalises = false}));
  REQUIRE(rows.rows(0) == tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) REQUIRE(std::ranges::equal(rows.row(0, i), expected.row(i)));
  const Embeddings last = must(engine.embed(std::span(&tokens, 1), {.pooling = Pooling::last, .normalises = false}));
  CHECK(std::ranges::equal(last.row(0), expected.row(tokens.size() - 1)));
}

TEST_CASE("texts that are read together keep within a budget of keys and values", "[hub]") {
  const Engine engine = load(encoder("nomic"));
  // Pages of one text of 96 tokens; 200 texts of two tokens would take 200 pages at once.
  const std::uint64_t budget = 3 * engine.plan().kv_layout.page_bytes();
  const Engine narrow = must(Engine::load(encoder("nomic"), {.tokenizer = TokenizerUse::none, .numerics = Numerics::reference, .threads = 2, .kv_budget = budget}));
  const std::vector<std::vector<Token>> texts(200, {7, 9});
  const Embeddings expected = must(engine.embed(texts)), made = must(narrow.embed(texts));
  CHECK(std::ranges::equal(expected.values(), made.values()));
  CHECK(narrow.kv_figures().used_bytes == 0);
  const std::vector<std::vector<Token>> long_text(1, std::vector<Token>(200, 7));
  CHECK(narrow.embed(long_text).error().code() == ErrorCode::cache_full);
  CHECK(std::ranges::equal(must(narrow.embed(texts)).values(), expected.values()));
}

TEST_CASE("a folder's files for sentence-transformers say how texts are read", "[hub]") {
  ChangedFolder folder("../encoders/bert-rank");
  folder.replace("config.json", "BertForSequenceClassification", "BertModel");
  folder.write("modules.json", R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
                                   {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])");
  fs::create_directory(folder.path() / "1_Pooling");
  folder.write("1_Pooling/config.json", R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
  folder.write("sentence_bert_config.json", R"({"max_seq_length": 6})");
  folder.write("config_sentence_transformers.json", R"({"prompts": {"query": "red ", "passage": "the "}})");
  const Engine engine = must(Engine::load(folder.path(), {.threads = 2}));
  CHECK(engine.spec().pooling == Pooling::cls);
  const auto vector_of = [&](std::string_view text, const EmbedOptions& options = {}) {
    const Embeddings made = must(engine.embed(std::span(&text, 1), options));
    return std::vector<float>(made.row(0).begin(), made.row(0).end());
  };
  CHECK(vector_of("bird", {.role = TextRole::query}) == vector_of("red bird"));
  CHECK(vector_of("bird", {.role = TextRole::document}) == vector_of("the bird"));
  CHECK(vector_of("bird", {.prompt = "a "}) == vector_of("a bird"));
  CHECK(vector_of("the cat eats red bread and fish") == vector_of("the cat eats red"));  // and [CLS] and [SEP]
  CHECK(vector_of("") != vector_of("bird"));
  const std::string_view text = "the cat [SEP]";
  CHECK(must(engine.embed(std::span(&text, 1), {.special = Special::parse})).tokens(0) == 5);
  CHECK(must(engine.embed(std::span(&text, 1))).tokens(0) == 6);  // [ and what follows are no control token

  const auto problem = [&] {
    const auto made = Engine::load(folder.path());
    return made ? std::string() : made.error().text();
  };
  folder.write("1_Pooling/config.json", R"({"pooling_mode_max_tokens": true})");
  CHECK_THAT(problem(), Catch::Contains("pooling_mode_max_tokens"));
  folder.write("modules.json", R"([{"path": "../..", "type": "sentence_transformers.models.Pooling"}])");
  CHECK_THAT(problem(), Catch::Contains("is no name of a folder"));
  folder.write("modules.json", R"([{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])");
  CHECK_THAT(problem(), Catch::Contains("2_Dense/config.json: activation_function"));
  fs::create_directory(folder.path() / "2_Dense");
  folder.write("2_Dense/config.json", R"({"bias": true})");
  CHECK_THAT(problem(), Catch::Contains("2_Dense/config.json: bias"));
  folder.write("2_Dense/config.json", R"({"activation_function": "torch.nn.modules.linear.Identity"})");
  CHECK_THAT(problem(), Catch::Contains("1 modules of type Dense; tessera has models with two or none"));
  folder.write("modules.json", R"([{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}, {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])");
  CHECK_THAT(problem(), Catch::Contains("modules of type Dense behind a model of type \"bert\""));
  folder.write("modules.json", R"([{"path": "2_CNN", "type": "sentence_transformers.models.CNN"}])");
  CHECK_THAT(problem(), Catch::Contains("a module of type \"CNN\""));
}

TEST_CASE("encoders' folders with numbers that make no sense are errors", "[hub]") {
  const auto problem = [](std::string_view name, std::string_view from, std::string_view to) {
    ChangedFolder folder("../encoders/" + std::string(name));
    folder.replace("config.json", from, to);
    const auto made = Engine::load(folder.path(), {.tokenizer = TokenizerUse::none});
    return made ? std::string() : made.error().text();
  };
  const std::string_view positions = "\"max_position_embeddings\": 50";
  for (const std::string_view value : {"2", "0", "-9223372036854775808"}) {
    CAPTURE(value);
    CHECK_THAT(problem("xlm-roberta", positions, "\"max_position_embeddings\": " + std::string(value)), Catch::Contains("max_position_embeddings"));
  }
  CHECK_THAT(problem("nomic", "NomicBertModel", "NomicBertForSequenceClassification"), Catch::Contains("whose head tessera does not read"));
  CHECK_THAT(problem("modernbert", "\"sliding_attention\",", "\"other\","), Catch::Contains("layer_types"));
  CHECK_THAT(problem("bert", "\"hidden_act\": \"gelu\"", "\"hidden_act\": \"relu\""), Catch::Contains("hidden_act"));
}

TEST_CASE("ModernBERT's first form of config.json means the same", "[hub]") {
  ChangedFolder folder("../encoders/modernbert");
  std::string text = text_of_file(folder.path() / "config.json");
  const std::size_t from = text.find("\"rope_parameters\""), to = text.find("},", text.find("sliding_attention", from));
  text.replace(from, to + 2 - from, "\"global_rope_theta\": 160000.0, \"local_rope_theta\": 10000.0,");
  folder.write("config.json", text);
  const auto texts = token_lines(encoder("modernbert") / "tokens.txt");
  const Embeddings made = must(load(folder.path()).embed(texts)), expected = must(load(encoder("modernbert")).embed(texts));
  CHECK(std::ranges::equal(made.values(), expected.values()));
}

TEST_CASE("an encoder refuses what only a model that writes can do", "[hub]") {
  const Engine engine = load(encoder("bert"));
  CHECK_FALSE(engine.spec().has_logits);
  Session session = must(engine.session());
  const std::vector<Token> tokens = {5, 6, 7};
  const auto logits = session.append(tokens);
  REQUIRE_FALSE(logits);
  CHECK(logits.error().code() == ErrorCode::unsupported);
  CHECK_THAT(logits.error().text(), Catch::Contains("gives embeddings and no logits"));
  REQUIRE(session.append(tokens, {.logits = LogitsOf::none}));
  CHECK_THAT(session.append(tokens, {.logits = LogitsOf::none}).error().text(), Catch::Contains("reads a text as a whole"));
  CHECK_THAT(engine.session({.kv = {.prefix = PrefixReuse::on}}).error().text(), Catch::Contains("prefix reuse"));
  CHECK(must(session.verify()).verdict == Verdict::unverifiable);
  REQUIRE_FALSE(session.append({}));
  CHECK(session.position() == 3);
  CHECK(must(session.fork()).position() == 3);
  CHECK_FALSE(engine.session({.stream = {.sinks = 1, .window = 8}}));
  const std::string_view document = "x";
  CHECK_THAT(engine.rerank("q", std::span(&document, 1)).error().text(), Catch::Contains("no tokenizer"));
  Batch batch;
  Session other = must(engine.session());
  must(batch.add(other, Row{.token = 5, .want = Want::scores}));
  CHECK_THAT(engine.forward(batch).error().text(), Catch::Contains("no head"));
  batch.clear();
  must(batch.add(other, Row{.token = 5, .want = Want::hidden, .segment = 2}));
  CHECK_THAT(engine.forward(batch).error().text(), Catch::Contains("a row of segment 2; the model has 2 segments"));
}

TEST_CASE("scores of models that rank agree with transformers", "[hub]") {
  for (const std::string_view name : {"bert-rank", "xlm-roberta-rank"}) {
    CAPTURE(name);
    const Engine engine = must(Engine::load(encoder(name), {.numerics = Numerics::reference, .threads = 2}));
    const auto expected = read_floats(encoder(name) / "scores.f32");
    std::istringstream lines(text_of_file(encoder(name) / "pairs.txt"));
    std::size_t i = 0;
    for (std::string line; std::getline(lines, line); ++i) {
      const std::size_t tab = line.find('\t');
      const std::string_view document = std::string_view(line).substr(tab + 1);
      const auto scores = must(engine.rerank(line.substr(0, tab), std::span(&document, 1)));
      REQUIRE(scores.size() == 1);
      CHECK(scores[0] == Approx(expected[i]).margin(1e-5));
    }
    CHECK(i == expected.size());
  }
}

}  // namespace test_hub_encoders

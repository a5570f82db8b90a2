// What the C ABI gives is what the C++ API gives: logits, tokens, texts, vectors, bit for bit.
#include "capi/c_rig.hpp"

namespace test_c_same {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::string_view kText = "Once upon a time there was a little dog";

struct Rig {
  CEngine c = c_engine(story_model());
  Engine engine = must(Engine::load(story_model(), {.threads = 2}));
  std::vector<Token> tokens = vector_of(c_tokens(c, kText));
};
Rig& rig() {
  static Rig one;
  return one;
}

std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

template <class Next>
std::pair<std::vector<Token>, std::string> read_all(Next&& next) {
  std::pair<std::vector<Token>, std::string> all;
  for (;;) {
    const tessera_piece* piece = nullptr;
    succeed([&](auto error) { return next(&piece, error); });
    if (piece == nullptr) return all;
    all.first.push_back(tessera_piece_token(piece));
    all.second += tessera_piece_text(piece, nullptr);
  }
}

}  // namespace

TEST_CASE("tokens, text and their pieces are the tokenizer's") {
  const Tokenizer& tokenizer = rig().engine.tokenizer();
  CHECK(rig().tokens == must(tokenizer.encode(kText)));
  CHECK(tessera_engine_vocabulary_size(rig().c.get()) == tokenizer.vocab_size());
  CHECK(tessera_bos_token(rig().c.get()) == tokenizer.bos().value_or(-1));
  CHECK(tessera_eos_token(rig().c.get()) == tokenizer.eos().value_or(-1));
  for (Token token = 0; static_cast<std::size_t>(token) < tokenizer.vocab_size(); ++token) {
    const char* bytes = nullptr;
    std::size_t size = 0;
    const auto code = tessera_token_bytes(rig().c.get(), token, &bytes, &size, nullptr);
    const std::int32_t flags = (tokenizer.is_control(token) ? TESSERA_TOKEN_CONTROL : 0) |
                               (tokenizer.is_end_of_generation(token) ? TESSERA_TOKEN_END : 0);
    if (code != 0 || std::string_view(bytes, size) != tokenizer.piece(token) ||
        tessera_token_flags(rig().c.get(), token) != flags) {
      FAIL("token " << token);
    }
  }
}

TEST_CASE("a session's logits are the C++ session's, for all rows, some rows and the last one") {
  Session session = must(rig().engine.session());
  const CSession c = c_session(rig().c);
  auto options = options_of<tessera_append_options>();
  options.logits = TESSERA_LOGITS_ALL;
  succeed([&](auto error) {
    return tessera_session_append(c.get(), rig().tokens.data(), rig().tokens.size(), &options, error);
  });
  CHECK(logits_of(c) == copy(must(session.append(rig().tokens, {.logits = LogitsOf::all})).values));

  const std::size_t rows[] = {0, 3};
  options.logits = TESSERA_LOGITS_LAST;
  options.rows = rows;
  options.row_count = 2;
  succeed([&](auto error) {
    return tessera_session_append(c.get(), rig().tokens.data(), rig().tokens.size(), &options, error);
  });
  CHECK(logits_of(c) == copy(must(session.append(rig().tokens, {.rows = rows})).values));

  append(c, {rig().tokens[1]});
  CHECK(logits_of(c) == copy(must(session.append({&rig().tokens[1], 1})).values));
  CHECK(logits_of(c) == copy(session.logits()));

  std::vector<float> scores(rig().tokens.size());
  succeed([&](auto error) {
    return tessera_session_score(c.get(), rig().tokens.data(), scores.size(), scores.data(), nullptr, error);
  });
  CHECK(scores == must(session.score(rig().tokens)));
  CHECK(logits_of(c).empty() == session.logits().empty());
}

TEST_CASE("a generation, a sampler by hand and a request draw the C++ sampler's tokens") {
  constexpr const char* kSampler =
      R"({"temperature": 0.9, "top_k": 50, "top_p": 0.95, "repetition_penalty": 1.1, "seed": 11})";
  const auto chain = [] {
    return sampling::chain().penalties({.repetition = 1.1f}).temperature(0.9f).top_k(50).top_p(0.95f).seed(11);
  };
  Session session = must(rig().engine.session());
  must(session.append(rig().tokens));
  Sampler sampler = chain().build();
  std::vector<Token> expected;
  std::string text;
  for (const auto& piece : session.generate(sampler, {.max_tokens = 24, .stop_strings = {"zzz"}})) {
    expected.push_back(must(piece).token);
    text += piece->text;
  }

  const CSession c = c_session(rig().c);
  append(c, rig().tokens);
  const CSampler c_made = c_sampler(rig().c, kSampler);
  const auto options = options_of<tessera_generate_options>(R"({"max_tokens": 24, "stop": "zzz"})");
  const auto generation = made<CGeneration>(
      [&](auto out, auto error) { return tessera_session_generate(c.get(), c_made.get(), &options, out, error); });
  const auto written =
      read_all([&](auto piece, auto error) { return tessera_generation_next(generation.get(), piece, error); });
  CHECK(written.first == expected);
  CHECK(written.second == text);

  const CSampler listed =
      c_sampler(rig().c, R"({"seed": 11, "stages": [{"penalties": {"repetition": 1.1}}, {"temperature": 0.9},
      {"top_k": 50}, {"top_p": 0.95}]})");
  const CSession by_hand = c_session(rig().c);
  append(by_hand, rig().tokens);
  std::vector<Token> history = rig().tokens;
  succeed([&](auto error) {
    return tessera_sampler_begin(listed.get(), history.data(), history.size(), history.size(), error);
  });
  for (const Token wanted : expected) {
    Token token = -1;
    const std::vector<float> logits = logits_of(by_hand);
    succeed([&](auto error) {
      return tessera_sampler_sample(listed.get(), logits.data(), logits.size(), history.data(), history.size(),
                                    history.size(), &token, error);
    });
    REQUIRE(token == wanted);
    succeed([&](auto error) { return tessera_sampler_accept(listed.get(), token, error); });
    history.push_back(token);
    append(by_hand, {token});
  }

  const auto scheduler = made<CScheduler>(
      [&](auto out, auto error) { return tessera_scheduler_create(rig().c.get(), nullptr, out, error); });
  const std::string json = std::string(R"({"max_tokens": 24, "stop": ["zzz"], "sampler": )") + kSampler + "}";
  const auto submit = options_of<tessera_submit_options>(json.c_str());
  const auto request = made<CRequest>([&](auto out, auto error) {
    return tessera_scheduler_submit(scheduler.get(), rig().tokens.data(), rig().tokens.size(), nullptr, &submit, out,
                                    error);
  });
  const auto answered = read_all(
      [&](auto piece, auto error) { return tessera_request_next(request.get(), TESSERA_WAIT_FOREVER, piece, error); });
  CHECK(answered == written);
}

TEST_CASE("hidden states, embeddings and the rows of several sessions are Engine::forward()'s") {
  const std::size_t n = rig().tokens.size();
  for (const auto& [c_want, want] :
       {std::pair(TESSERA_WANT_LOGITS, Want::logits), std::pair(TESSERA_WANT_HIDDEN, Want::hidden),
        std::pair(TESSERA_WANT_EMBEDDING, Want::embedding)}) {
    Session a = must(rig().engine.session()), b = must(rig().engine.session());
    Batch batch;
    for (Session* session : {&a, &b}) {
      for (const Token token : rig().tokens) must(batch.add(*session, Row{.token = token, .want = want}));
    }
    const Outputs expected = must(rig().engine.forward(batch));
    const CSession c_a = c_session(rig().c), c_b = c_session(rig().c);
    tessera_session* const sessions[] = {c_a.get(), c_b.get()};
    const std::size_t counts[] = {n, n};
    std::vector<Token> tokens = rig().tokens;
    tokens.insert(tokens.end(), rig().tokens.begin(), rig().tokens.end());
    auto options = options_of<tessera_forward_options>();
    options.every_row = 1;
    const auto outputs = made<COutputs>([&](auto out, auto error) {
      return tessera_forward(rig().c.get(), sessions, counts, 2, tokens.data(), c_want, &options, out, error);
    });
    for (std::size_t row = 0; row < 2 * n; ++row) {
      const float* values = nullptr;
      std::size_t count = 0;
      succeed([&](auto error) { return tessera_outputs_row(outputs.get(), row, &values, &count, error); });
      REQUIRE(copy({values, count}) == copy(expected.row(row)));
    }
  }
}

TEST_CASE("vectors of texts and scores of documents are Engine::embed()'s and Engine::rerank()'s") {
  const auto folder = golden_dir() / "encoders/bert-rank";
  const Engine engine = must(Engine::load(folder, {.threads = 2}));
  const CEngine c = c_engine(folder);
  const std::vector<std::string_view> texts = {"the small cat sleeps near the house", "water", "a large river"};
  std::vector<const char*> begins;
  std::vector<std::size_t> sizes;
  for (const std::string_view text : texts) begins.push_back(text.data()), sizes.push_back(text.size());
  const Embeddings expected = must(engine.embed(texts, {.pooling = Pooling::mean, .dimensions = 8}));
  constexpr std::string_view kOptions = R"({"pooling": "mean", "dimensions": 8})";
  const auto vectors = made<COutputs>([&](auto out, auto error) {
    return tessera_embed_texts(c.get(), begins.data(), sizes.data(), sizes.size(), kOptions.data(), kOptions.size(), out, error);
  });
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const float* values = nullptr;
    std::size_t count = 0;
    succeed([&](auto error) { return tessera_outputs_row(vectors.get(), i, &values, &count, error); });
    CHECK(copy({values, count}) == copy(expected.row(i)));
  }
  std::vector<float> scores(texts.size());
  succeed([&](auto error) {
    return tessera_rerank(c.get(), "a cat", 5, begins.data(), sizes.data(), sizes.size(), nullptr, 0, scores.data(), error);
  });
  CHECK(scores == must(engine.rerank("a cat", texts)));
}

TEST_CASE("a conversation's answer is the C++ conversation's, alone and beside a scheduler's requests") {
  ChatRequest request;
  request.messages = {{.role = "user", .content = "Tell me a story about a cat."}};
  Conversation talk = must(Conversation::create(rig().engine, request));
  Sampler sampler = sampling::chain().temperature(0.8f).seed(5).build();
  Answer answer = must(talk.answer(sampler, {.max_tokens = 20}));
  std::string expected;
  while (const auto delta = answer.next()) expected += delta->text;
  REQUIRE(answer.status());

  const auto scheduler = made<CScheduler>(
      [&](auto out, auto error) { return tessera_scheduler_create(rig().c.get(), nullptr, out, error); });
  const std::string json = request.to_json().dump();
  constexpr std::string_view kAnswer = R"({"max_tokens": 20, "sampler": {"temperature": 0.8, "seed": 5}})";
  for (tessera_scheduler* with : {static_cast<tessera_scheduler*>(nullptr), scheduler.get()}) {
    const auto c = made<CConversation>([&](auto out, auto error) {
      return tessera_conversation_create(rig().c.get(), json.data(), json.size(), nullptr, 0, out, error);
    });
    const auto c_answer = made<CAnswer>([&](auto out, auto error) {
      return tessera_conversation_answer(c.get(), with, kAnswer.data(), kAnswer.size(), nullptr, out, error);
    });
    const auto read =
        read_all([&](auto piece, auto error) { return tessera_answer_next(c_answer.get(), piece, error); });
    CHECK(read.second == expected);
    const auto messages =
        made<CText>([&](auto out, auto error) { return tessera_conversation_get(c.get(), out, error); });
    CHECK(string_of(messages) == talk.request().to_json().dump());
  }
}

TEST_CASE("a fork, a saved session and a session that a request took go on with the same bits") {
  Session session = must(rig().engine.session());
  must(session.append(rig().tokens));
  const CSession c = c_session(rig().c);
  append(c, rig().tokens);
  const auto fork = made<CSession>([&](auto out, auto error) { return tessera_session_fork(c.get(), out, error); });
  std::vector<std::byte> bytes;
  const auto sink = [](void* user, const void* data, size_t n) -> std::int32_t {
    const auto* from = static_cast<const std::byte*>(data);
    static_cast<std::vector<std::byte>*>(user)->insert(static_cast<std::vector<std::byte>*>(user)->end(), from,
                                                       from + n);
    return 0;
  };
  succeed([&](auto error) { return tessera_session_save_to(c.get(), sink, &bytes, error); });
  Session restored = must(rig().engine.restore(std::span<const std::byte>(bytes)));  // across the two APIs
  must(session.append({&rig().tokens[2], 1}));
  must(restored.append({&rig().tokens[2], 1}));
  append(fork, {rig().tokens[2]});
  CHECK(logits_of(fork) == copy(session.logits()));
  CHECK(copy(restored.logits()) == copy(session.logits()));
}

}  // namespace test_c_same

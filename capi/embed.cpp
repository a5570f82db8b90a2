// Embeddings of texts, and scores of documents.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/embedding.hpp>
#include <tessera/engine.hpp>

#include "engine.hpp"
#include "options/json_options.hpp"
#include "outputs.hpp"
#include "values/tables.hpp"
#include "values/values.hpp"

namespace tessera::c {

namespace {

constexpr std::string_view kPoolings[] = {"mean", "cls", "last"};
constexpr std::string_view kRoles[] = {"plain", "query", "document"};
constexpr std::string_view kLongTexts[] = {"cut", "refuse", "windows"};

constexpr Key<EmbedOptions> kEmbedKeys[] = {
    {"pooling", "\"mean\", \"cls\", \"last\"",
     "which rows make the embedding: all, the first, or the last one; default: as the model says",
     [](EmbedOptions& to, const Value& v) {
       constexpr Pooling kKinds[] = {Pooling::mean, Pooling::cls, Pooling::last};
       to.pooling = kKinds[v.choice(kPoolings)];
     }},
    {"normalise", "boolean", "true: scales each vector to length 1; default true",
     [](EmbedOptions& to, const Value& v) { to.normalises = v.boolean(); }},
    {"dimensions", "integer", "how many values of each vector are kept, the first ones; default 0: all",
     [](EmbedOptions& to, const Value& v) { to.dimensions = v.integer<std::uint32_t>(); }},
    {"role", "\"plain\", \"query\", \"document\"",
     "the model's prompt for this role is put in front of each text; default \"plain\": no prompt",
     [](EmbedOptions& to, const Value& v) { to.role = v.one_of<TextRole>(kRoles); }},
    {"prompt", "text", "stands in front of each text, in place of the model's prompt",
     [](EmbedOptions& to, const Value& v) { to.prompt = v.string(); }},
    {"long_text", "\"cut\", \"refuse\", \"windows\"",
     "texts of more tokens than the model reads: cut off, an error, or read in windows; default \"cut\"",
     [](EmbedOptions& to, const Value& v) { to.long_text = v.one_of<LongText>(kLongTexts); }},
    {"overlap", "integer", "tokens that a window shares with the one before it; default 0",
     [](EmbedOptions& to, const Value& v) { to.overlap = v.integer<std::uint32_t>(); }},
    {"most_tokens", "integer", "tokens that are read of a text; default 0: as many as the model reads",
     [](EmbedOptions& to, const Value& v) { to.most_tokens = v.integer<std::uint32_t>(); }},
};
constexpr Key<RerankOptions> kRerankKeys[] = {
    {"instruction", "text", "the task, for models that take one (Qwen3-Reranker); default: their usual one",
     [](RerankOptions& to, const Value& v) { to.instruction = v.string(); }},
    {"most_tokens", "integer", "tokens of query and document together; default 0: as many as the model reads",
     [](RerankOptions& to, const Value& v) { to.most_tokens = v.integer<std::uint32_t>(); }},
};

std::vector<std::string_view> texts_of(const char* const* texts, const size_t* sizes, size_t count, const std::string& name) {
  const auto begins = list(texts, count, name);
  const auto lengths = list(sizes, count, "sizes");
  std::vector<std::string_view> found;
  found.reserve(count);
  for (std::size_t i = 0; i < count; ++i) found.push_back(text(begins[i], lengths[i], name + "[" + std::to_string(i) + "]"));
  return found;
}

}  // namespace

std::vector<Table> embed_tables() {
  return {table_of<EmbedOptions>("Embedding", kEmbedKeys), table_of<RerankOptions>("Rerank", kRerankKeys)};
}

}  // namespace tessera::c

using namespace tessera::c;
using tessera::ErrorCode;

int32_t tessera_embed(const tessera_engine* engine, const int32_t* tokens, size_t count, const char* json,
                      size_t json_size, float* values, size_t value_count, tessera_error** error) {
  return call(error, [&] {
    const tessera::Engine& of = need(engine, "engine").state->engine;
    const auto ids = list(tokens, count, "tokens");
    tessera::EmbedOptions options;
    read_options<tessera::EmbedOptions>(json, json_size, "json", kEmbedKeys, options);
    const std::size_t width = options.dimensions != 0 ? options.dimensions : of.spec().embedding_width();
    if (values == nullptr || value_count != width) {
      fail(ErrorCode::invalid_argument,
           "must have place for " + std::to_string(width) + " numbers: the model's embeddings have as many", "values");
    }
    if (ids.empty()) fail(ErrorCode::invalid_argument, "a text without tokens has no embedding", "tokens");
    const std::vector<tessera::Token> text(ids.begin(), ids.end());
    const tessera::Embeddings vectors = must(of.embed(std::span(&text, 1), options));
    std::ranges::copy(vectors.row(0), values);
  });
}

int32_t tessera_embed_texts(const tessera_engine* engine, const char* const* texts, const size_t* sizes, size_t count,
                            const char* json, size_t json_size, tessera_outputs** vectors, tessera_error** error) {
  return call(error, [&] {
    tessera_outputs*& made = out(vectors, "vectors");
    const tessera::Engine& of = need(engine, "engine").state->engine;
    const auto given = texts_of(texts, sizes, count, "texts");
    tessera::EmbedOptions options;
    read_options<tessera::EmbedOptions>(json, json_size, "json", kEmbedKeys, options);
    made = new tessera_outputs(must(of.embed(given, options)));
  });
}

int32_t tessera_rerank(const tessera_engine* engine, const char* query, size_t query_size, const char* const* documents,
                       const size_t* sizes, size_t count, const char* json, size_t json_size, float* scores,
                       tessera_error** error) {
  return call(error, [&] {
    const tessera::Engine& of = need(engine, "engine").state->engine;
    const std::string_view asked = text(query, query_size, "query");
    const auto given = texts_of(documents, sizes, count, "documents");
    if (scores == nullptr && count != 0) fail(ErrorCode::invalid_argument, "must have place for a number for each document", "scores");
    tessera::RerankOptions options;
    read_options<tessera::RerankOptions>(json, json_size, "json", kRerankKeys, options);
    std::ranges::copy(must(of.rerank(asked, given, options)), scores);
  });
}

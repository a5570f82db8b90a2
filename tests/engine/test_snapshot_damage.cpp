// Saved sessions that were changed, cut, made by a later version or for another engine: an error that says which.
#include "engine/snapshot_bytes.hpp"

namespace test_snapshot_damage {

using namespace tessera;
using namespace tessera::test;

namespace {

// Edited, with a history and logits: every kind of section.
struct Rig {
  Rig() : engine(load_golden("llama-gqa")), session(must(engine.session())) {
    const auto tokens = read_tokens(golden_dir() / "llama-gqa.tokens.txt");
    must(session.append(std::span(tokens).first(9)));
    must(session.remove(2, 4));
    must(session.append(std::span(tokens).subspan(9, 1)));
    bytes = saved(session);
  }
  Engine engine;
  Session session;
  Bytes bytes;
};

Error refused(const Engine& engine, std::span<const std::byte> bytes, const SessionOptions& options = {}) {
  auto restored = engine.restore(bytes, options);
  if (restored) FAIL("restored what should be refused");
  return restored.error();
}

// One line that names the buffer, the part and its offset.
void check_error(const Error& error, ErrorCode code, const std::string& place, std::string_view words) {
  INFO(error.text());
  CHECK(error.code() == code);
  CHECK(error.place().find(place) != std::string::npos);
  CHECK(error.message().find(words) != std::string::npos);
  CHECK(error.text().find('\n') == std::string::npos);
}

// How an error names the part that this byte is in.
std::string part_at(const std::vector<SectionAt>& sections, std::size_t byte) {
  if (byte < kFileHeader) return "buffer: header, offset 0";
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (byte >= sections[i].end()) continue;
    const std::string number = "buffer: section " + std::to_string(i), offset = ", offset " + std::to_string(sections[i].begin);
    // In a section's header, its type cannot be trusted.
    if (byte < sections[i].payload) return number + offset;
    const std::string& type = sections[i].type;
    return number + " (" +
           (type == "MODL"   ? "model"
            : type == "STAT" ? "state"
            : type == "TOKS" ? "tokens"
            : type == "LOGI" ? "logits"
            : type == "HIST" ? "history"
            : type == "SEAL" ? "seal"
                             : "layer " + std::to_string(i - 5)) +
           ")" + offset;
  }
  return "none";
}

void put_text(Bytes& bytes, std::string_view from, std::string_view to) {
  REQUIRE(from.size() == to.size());
  const auto what = std::as_bytes(std::span(from));
  const auto at = std::search(bytes.begin(), bytes.end(), what.begin(), what.end());
  REQUIRE(at != bytes.end());
  std::ranges::copy(std::as_bytes(std::span(to)), at);
}

}  // namespace

TEST_CASE("a flipped byte anywhere, and every single flipped bit, is found and placed", "[snapshot]") {
  Rig rig;
  const auto sections = sections_of(rig.bytes);
  REQUIRE(sections.size() == 8);
  REQUIRE(sections.back().end() == rig.bytes.size());
  for (std::size_t byte = 0; byte < rig.bytes.size(); ++byte) {
    const std::string part = part_at(sections, byte);
    for (const unsigned flip : {0xffu, 1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u}) {
      rig.bytes[byte] ^= static_cast<std::byte>(flip);
      const Error error = refused(rig.engine, rig.bytes);
      rig.bytes[byte] ^= static_cast<std::byte>(flip);
      if (error.code() == ErrorCode::corrupt_file && error.place() == part) continue;
      FAIL("byte " << byte << " ^ " << flip << ", in " << part << ": " << error.text());
    }
  }
  check_same(rig.session, must(rig.engine.restore(rig.bytes)));
}

TEST_CASE("a file that is cut or has something behind its end", "[snapshot]") {
  Rig rig;
  for (std::size_t size = 0; size < rig.bytes.size(); ++size) {
    const Error error = refused(rig.engine, std::span(rig.bytes).first(size));
    if (error.code() != ErrorCode::corrupt_file) FAIL(size << ": " << error.text());
    if (size >= kFileHeader) check_error(error, ErrorCode::corrupt_file, "header", "it is cut");
    Bytes cut(rig.bytes.begin(), rig.bytes.begin() + static_cast<std::ptrdiff_t>(size));
    if (size < kFileHeader) continue;
    reseal(cut);  // as if nothing had ever followed
    CHECK(refused(rig.engine, cut).code() == ErrorCode::corrupt_file);
  }
  Bytes more = rig.bytes;
  more.push_back(std::byte{0});
  check_error(refused(rig.engine, more), ErrorCode::corrupt_file, "header", "something behind its end");
  reseal(more);
  check_error(refused(rig.engine, more), ErrorCode::corrupt_file, "(seal)", "something follows");
  check_error(refused(rig.engine, {}), ErrorCode::corrupt_file, "header", "not a saved session");
  const auto model = golden_dir() / "llama-gqa.gguf";
  check_error(rig.engine.restore(model).error(), ErrorCode::corrupt_file, model.string() + ": header", "not a saved session");
  CHECK(rig.engine.restore(golden_dir() / "absent").error().code() == ErrorCode::not_found);
  CHECK(rig.engine.restore(golden_dir()).error().code() == ErrorCode::invalid_argument);
  CHECK(rig.engine.restore(std::shared_ptr<ByteSource>()).error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("later versions, and what this one does not know, are refused by name", "[snapshot]") {
  Rig rig;
  const auto with = [&](std::size_t offset, auto value) {
    Bytes changed = rig.bytes;
    put_number(changed, offset, value);
    reseal(changed);
    return changed;
  };
  for (const std::uint32_t version : {2u, 0u, 0xffffffffu}) {
    const Error error = refused(rig.engine, with(8, version));
    check_error(error, ErrorCode::unsupported, "header", "version " + std::to_string(version));
    check_error(error, ErrorCode::unsupported, "header", "reads version 1");
  }
  check_error(refused(rig.engine, with(12, 1u)), ErrorCode::unsupported, "header", "flags");
  check_error(refused(rig.engine, with(28, 1u)), ErrorCode::unsupported, "header", "flags");
  const auto state = section(rig.bytes, "STAT");
  check_error(refused(rig.engine, with(state.begin + 4, 3u)), ErrorCode::unsupported, "(state)", "flags");
  check_error(refused(rig.engine, with(state.payload + 44, 16u)), ErrorCode::unsupported, "(state)", "flags");
  check_error(refused(rig.engine, with(state.payload + 24, 7u)), ErrorCode::unsupported, "(state)", "type 7");

  // Unknown sections, before each of the known ones.
  const Bytes payload(1'000'000, std::byte{7});
  for (const SectionAt& at : sections_of(rig.bytes)) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{5}, payload.size()}) {
      const auto part = std::span(payload).first(size);
      check_same(rig.session, must(rig.engine.restore(with_section(rig.bytes, at.begin, "note", 0, part))));
      check_error(refused(rig.engine, with_section(rig.bytes, at.begin, "note", 1, part)), ErrorCode::unsupported,
                  "(\"note\"), offset " + std::to_string(at.begin), "does not know");
    }
    Bytes damaged = with_section(rig.bytes, at.begin, "note", 0, std::span(payload).first(5));
    damaged[at.payload + 2] ^= std::byte{1};
    check_error(refused(rig.engine, damaged), ErrorCode::corrupt_file, "(\"note\")", "damaged");
  }
  check_error(refused(rig.engine, with_section(rig.bytes, rig.bytes.size(), "note", 0, {})), ErrorCode::corrupt_file, "(seal)",
              "something follows");
}

TEST_CASE("sections that are missing, doubled, swapped or from another file", "[snapshot]") {
  Rig rig;
  const auto sections = sections_of(rig.bytes);
  const auto cut = [&](const Bytes& from, const SectionAt& at) {
    return Bytes(from.begin() + static_cast<std::ptrdiff_t>(at.begin), from.begin() + static_cast<std::ptrdiff_t>(at.end()));
  };
  const auto build = [&](const std::vector<Bytes>& parts) {
    Bytes bytes(rig.bytes.begin(), rig.bytes.begin() + kFileHeader);
    for (const Bytes& part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
    return bytes;
  };
  std::vector<Bytes> parts;
  for (const SectionAt& at : sections) parts.push_back(cut(rig.bytes, at));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto missing = parts, doubled = parts;
    missing.erase(missing.begin() + static_cast<std::ptrdiff_t>(i));
    doubled.insert(doubled.begin() + static_cast<std::ptrdiff_t>(i), parts[i]);
    for (Bytes changed : {build(missing), build(doubled)}) {
      reseal(changed);
      INFO(i);
      CHECK(refused(rig.engine, changed).code() == ErrorCode::corrupt_file);
    }
  }
  // Each is whole, and of the right type and size: only the seal can tell.
  auto swapped = parts;
  std::swap(swapped[5], swapped[6]);
  check_error(refused(rig.engine, build(swapped)), ErrorCode::corrupt_file, "(seal)", "do not belong together");
  Session other = must(rig.session.clone());
  must(other.remove(1, 2));
  must(other.truncate(other.position() - 1));
  must(other.append(std::vector<Token>{3, 4}));
  const Bytes foreign = saved(other);
  auto mixed = parts;
  mixed[6] = cut(foreign, sections_of(foreign)[6]);
  REQUIRE(build(mixed).size() == rig.bytes.size());
  check_error(refused(rig.engine, build(mixed)), ErrorCode::corrupt_file, "(seal)", "do not belong together");
}

TEST_CASE("another model, numerics, rope option or window is an error that names both", "[snapshot]") {
  Rig rig;
  const auto code = ErrorCode::invalid_argument;
  const auto none = [](GgufWriter&) {};
  check_error(refused(load_golden("llama-mha"), rig.bytes), code, "section 0 (model)", "another model");
  check_error(refused(changed_model("llama-gqa", [](GgufWriter& writer) {
                        must(writer.set("llama.attention.layer_norm_rms_epsilon", 0.03f));
                      }), rig.bytes),
              code, "section 0 (model)", "the engine has \"norm_eps 0.03\"");
  check_same(rig.session, must(changed_model("llama-gqa", none).restore(rig.bytes)));

  const Engine other_rope = changed_model("llama-gqa", [](GgufWriter& w) { must(w.set("llama.rope.freq_base", 500.0f)); });
  const Error rope = refused(other_rope, rig.bytes);
  check_error(rope, code, "section 0 (model)", "other settings of the model");
  check_error(rope, code, "", "ropes.theta 10000");
  check_error(rope, code, "", "ropes.theta 500");
  const Engine scaled = changed_model("llama-gqa", [](GgufWriter& writer) {
    must(writer.set_string("llama.rope.scaling.type", "linear"));
    must(writer.set("llama.rope.scaling.factor", 4.0f));
  });
  check_error(refused(scaled, rig.bytes), code, "section 0 (model)", "ropes.linear_factor 4");

  const Engine windowed = load_golden("llama-gqa", {.sliding_window = 7});
  const Error window = refused(windowed, rig.bytes);
  check_error(window, code, "section 0 (model)", "saved with other settings of the model: \"layers.window 0*2\"");
  check_error(window, code, "", "the engine has \"layers.window 7*2\"");

  // There is one family yet: a file of another one.
  Bytes numerics = rig.bytes;
  put_text(numerics, "reference-f32", "reference-f64");
  reseal(numerics);
  const Error family = refused(rig.engine, numerics);
  check_error(family, code, "section 0 (model)", "reference-f64");
  check_error(family, code, "", "reference-f32");
}

TEST_CASE("options that do not fit the file", "[snapshot]") {
  Rig rig;
  const auto code = ErrorCode::invalid_argument;
  const Error type = refused(rig.engine, rig.bytes, {.kv = {.dtype = DType::int8}});
  check_error(type, code, "(state)", "type F32, not INT8");
  check_error(type, code, "(state)", "convert()");
  CHECK(rig.engine.restore(rig.bytes, {.kv = {.dtype = DType::f32}}));
  // The engine's own default does not count: automatic is the file's.
  CHECK(must(load_golden("llama-gqa", {.kv = {.dtype = DType::f16}}).restore(rig.bytes)).kv().dtype() == DType::f32);

  REQUIRE(rig.session.tokens().size() == 8);
  check_error(refused(rig.engine, rig.bytes, {.context = 7}), code, "(state)", "a context of 8 or more");
  check_error(refused(load_golden("llama-gqa", {.context = 7}), rig.bytes), code, "(state)", "a context of 8 or more");
  CHECK(rig.engine.restore(rig.bytes, {.context = 8}));
  check_error(refused(rig.engine, rig.bytes, {.context = 65}), code, "buffer", "the engine's context is 64");
  check_error(refused(rig.engine, rig.bytes, {.kv = {.page_tokens = 24}}), code, "buffer", "16, 32 or 64");

  const KvOptions small_pages{.page_tokens = 16};
  const std::uint64_t page = must(rig.engine.session({.kv = small_pages})).kv().layout().page_bytes();
  const Engine poor = load_golden("llama-gqa", {.kv = small_pages, .kv_budget = page});
  check_error(refused(poor, rig.bytes, {.kv = {.page_tokens = 64}}), ErrorCode::cache_full, "buffer",
              "of a budget of " + std::to_string(page));
  Engine moved = load_golden("llama-gqa");
  const Engine taken = std::move(moved);
  CHECK(moved.restore(rig.bytes).error().code() == ErrorCode::invalid_state);
}

TEST_CASE("lengths that the file cannot hold are damage, whatever context they would need", "[snapshot]") {
  Rig rig;
  const auto state = section(rig.bytes, "STAT").payload;
  for (const std::uint64_t length : {std::uint64_t{1000}, std::uint64_t{1} << 40, std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
    for (const std::uint64_t computed : {length, std::uint64_t{8}}) {
      INFO(length << " tokens, " << computed << " computed");
      Bytes changed = rig.bytes;
      put_number(changed, state, length);
      put_number(changed, state + 8, computed);
      put_number(changed, state + 44, 1u);  // no logits: all need not be computed
      reseal(changed);
      const Error error = refused(rig.engine, changed);
      if (length == 1000 && computed == 8) continue;  // 4,000 bytes: they may be there
      check_error(error, ErrorCode::corrupt_file, "(state)", "do not fit into");
    }
  }
}

TEST_CASE("values that make no sense, under checksums that are right", "[snapshot]") {
  Rig rig;
  const auto state = section(rig.bytes, "STAT").payload;
  const auto tokens = section(rig.bytes, "TOKS").payload;
  const auto history = section(rig.bytes, "HIST").payload;
  const auto refuses = [&](const std::string& place, std::size_t offset, auto value) {
    Bytes changed = rig.bytes;
    put_number(changed, offset, value);
    reseal(changed);
    INFO(place << " + " << offset);
    const Error error = refused(rig.engine, changed);
    check_error(error, ErrorCode::corrupt_file, place, "");
  };
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  for (const std::uint64_t value : {std::uint64_t{7}, std::uint64_t{0}}) refuses("(state)", state, value);  // tokens
  for (const std::uint64_t value : {std::uint64_t{9}, kHuge, kHuge / 2}) refuses("(state)", state + 8, value);
  for (const std::uint32_t value : {103u, 0u}) refuses("(state)", state + 28, value);  // vocabulary
  for (const std::uint32_t value : {1u, 3u, ~0u}) refuses("(state)", state + 32, value);
  for (const std::uint32_t value : {2u, ~0u}) refuses("(state)", state + 36, value);
  for (const std::uint32_t value : {0u, 1u, 3u}) refuses("(state)", state + 40, value);
  refuses("", state + 44, 0u);
  refuses("", state + 44, 1u);
  refuses("", state + 44, 2u);
  refuses("", state + 44, 7u);  // there are no votes
  refuses("(state)", state + 48, 0u);  // as the KV type at the ends that of all
  for (const std::uint32_t value : {0u, 2u, ~0u}) refuses("(state)", state + 52, value);  // of how many layers, though of none
  refuses("(state)", state + 60, 1u);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const std::size_t at = state + 64 + 24 * layer;
    for (std::size_t i = 0; i < 4; ++i) refuses("(state)", at + 4 * i, 5u);  // shape, and whose keys it shares
    for (const std::uint64_t value : {std::uint64_t{9}, kHuge}) refuses("(state)", at + 16, value);  // first
    refuses("(state)", at + 16, std::uint64_t{1});  // a model without a window
  }
  for (const Token value : {-2, 104, 1 << 30}) refuses("(tokens)", tokens + 4, value);
  refuses("(history)", history, kHuge);
  refuses("(history)", history, kHuge / 4 + 10);  // times 4, it is 9 + 1 again
  refuses("(history)", history + 8, kHuge / 32 + 2);  // times 32, it is one again
  refuses("(history)", history + 16, 2u);
  refuses("(history)", history + 20, 1u);
  refuses("(history)", history + 24, Token{-1});
  const std::size_t removal = history + 24 + 4 * 10;
  for (const std::uint64_t value : {std::uint64_t{3}, std::uint64_t{11}, kHuge}) refuses("(history)", removal, value);
  for (const std::uint64_t value : {std::uint64_t{4}, std::uint64_t{1}, kHuge}) refuses("(history)", removal + 8, value);
  for (const std::uint64_t value : {std::uint64_t{2}, std::uint64_t{5}, kHuge}) refuses("(history)", removal + 16, value);
  for (const std::uint64_t value : {std::uint64_t{1}, std::uint64_t{2}, kHuge}) refuses("(history)", removal + 24, value);  // joins none

  for (const SectionAt& at : sections_of(rig.bytes)) {  // other lengths
    Bytes payload(rig.bytes.begin() + static_cast<std::ptrdiff_t>(at.payload),
                  rig.bytes.begin() + static_cast<std::ptrdiff_t>(at.payload + at.length));
    INFO(at.type);
    payload.push_back(std::byte{0});
    CHECK(refused(rig.engine, with_payload(rig.bytes, at, payload)).code() == ErrorCode::corrupt_file);
    payload.resize(at.length - 1);
    CHECK(refused(rig.engine, with_payload(rig.bytes, at, payload)).code() == ErrorCode::corrupt_file);
    CHECK(refused(rig.engine, with_payload(rig.bytes, at, {})).code() == ErrorCode::corrupt_file);
  }
}

}  // namespace test_snapshot_damage

// kv_room() and the error of a session that finds no pages tell the same number.
#include "engine/kv_rig.hpp"

namespace test_kv_room {

using namespace tessera;
using namespace tessera::test;

TEST_CASE("cache_full says as many bytes are free as kv_room(), though pages of another type lie idle") {
  const KvRig probe;
  const KvRig rig({.kv_budget = probe.page_bytes() * 8});
  const KvOptions idle{.dtype = DType::f16, .prefix = PrefixReuse::off},
      wanted{.dtype = DType::f32, .prefix = PrefixReuse::off};
  (void)rig.given(rig.part(0, 64), idle);  // gone again: its pages wait for another one
  const Session held = rig.given(rig.part(0, 32), wanted);
  Session one = rig.session(wanted);
  const auto full = one.append(rig.tokens);
  REQUIRE_FALSE(full);
  REQUIRE(full.error().code() == ErrorCode::cache_full);
  INFO(full.error().message());
  CHECK(full.error().message().find(" bytes of KV pages are needed and " + std::to_string(rig.engine.kv_room().bytes) +
                                    " are free") != std::string::npos);
}

}  // namespace test_kv_room

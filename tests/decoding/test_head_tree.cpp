// Trees of drafts from the logits of draft heads: which drafts there are, and in which order.
#include <cmath>
#include <string>

#include "catch.hpp"
#include "decoding/drafters/head_tree.hpp"
#include "decoding/drafters/level_tree.hpp"

namespace test_head_tree {

using namespace tessera;

namespace {

// Logits of four tokens with these shares.
std::vector<float> shares(std::vector<double> of) {
  std::vector<float> logits;
  for (const double share : of) logits.push_back(static_cast<float>(share > 0.0 ? std::log(share) : -INFINITY));
  return logits;
}

// The tree as text: each draft with its parent's index, "-" for none.
std::string text(std::span<const TreeDraft> drafts) {
  std::string all;
  for (const TreeDraft& draft : drafts) {
    all += (all.empty() ? "" : " ") + std::to_string(draft.token) + (draft.parent == kNoDraft ? "-" : "@" + std::to_string(draft.parent));
  }
  return all;
}

}  // namespace

TEST_CASE("a tree of heads branches where a leaf is likelier than one more draft of the trunk", "[speculation][heads]") {
  std::vector<TreeDraft> out(4);
  detail::HeadTree tree(out, 3);
  tree.add(0, shares({0.6, 0.3, 0.06, 0.04}));
  tree.add_likely_leaves();
  CHECK(text(std::span(out).first(tree.size())) == "0-");
  tree.add(2, shares({0.05, 0.03, 0.9, 0.02}));  // 0.54
  tree.add(3, shares({0.1, 0.1, 0.1, 0.7}));     // 0.38, still likelier than token 1 in the beginning
  tree.add_likely_leaves();
  CHECK(text(std::span(out).first(tree.size())) == "0- 2@0 3@1");
  tree.add(0, shares({0.5, 0.3, 0.1, 0.1}));     // 0.19: token 1 beside the first draft has 0.3
  CHECK(tree.is_full());
  CHECK(text(out) == "0- 2@0 3@1 1-");
}

TEST_CASE("a tree of heads has no more chains than it may, and none of impossible tokens", "[speculation][heads]") {
  std::vector<TreeDraft> out(8);
  detail::HeadTree tree(out, 2);
  tree.add(3, shares({0.4, 0.3, 0.0, 0.3}));
  tree.add(0, shares({1.0, 0.0, 0.0, 0.0}));
  tree.add_other_leaves();
  CHECK(text(std::span(out).first(tree.size())) == "3- 0@0 0-");
  detail::HeadTree chain(out, 1);
  chain.add(3, shares({0.4, 0.3, 0.0, 0.3}));
  chain.add_other_leaves();
  CHECK(text(std::span(out).first(chain.size())) == "3-");
  detail::HeadTree impossible(out, 4);
  impossible.add(3, shares({0.0, 0.0, 0.0, 1.0}));
  impossible.add_other_leaves();
  CHECK(text(std::span(out).first(impossible.size())) == "3-");
}

TEST_CASE("a tree of heads that read no drafts has a level's tokens behind each draft of the level before", "[speculation][heads]") {
  std::vector<TreeDraft> out(6);
  const auto grown = [&](std::size_t chains) {
    detail::LevelTree tree(out, chains);
    tree.add_level(0, shares({0.6, 0.3, 0.06, 0.04}));
    tree.add_level(2, shares({0.05, 0.2, 0.7, 0.05}));
    return text(std::span(out).first(tree.grow()));
  };
  // The chances are 0.6, 0.42, 0.3, 0.21, 0.12 and 0.06.
  CHECK(grown(4) == "0- 2@0 1- 2@2 1@0 1@2");
  CHECK(grown(2) == "0- 2@0 1- 2@2");
  CHECK(grown(1) == "0- 2@0");
  detail::LevelTree drawn(out, 3);
  drawn.add_level(3, shares({0.5, 0.3, 0.2, 0.0}));  // another token than the likeliest was drawn
  CHECK(text(std::span(out).first(drawn.grow())) == "3- 0- 1-");
  detail::LevelTree nothing(out, 3);
  CHECK(nothing.grow() == 0);
}

}  // namespace test_head_tree

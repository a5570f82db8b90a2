// A backend that makes a mistake: it leaves out a part of the model, or takes another constant.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/forwarding_backend.hpp"
#include "engine/models.hpp"

namespace tessera::test {

class MistakenBackend final : public ForwardingBackend {
 public:
  MistakenBackend(std::unique_ptr<Backend> inner, const ModelSpec& spec) : ForwardingBackend(std::move(inner)), spec_(spec) {}

  std::string makes;             // the mistake; empty: none
  std::set<std::string> can_make;  // those that would have changed something of what was computed

  [[nodiscard]] std::string_view name() const noexcept override { return "mistaken"; }

  Status begin(const backend::StepTables& tables) override {
    ropes_.assign(tables.ropes.begin(), tables.ropes.end());
    for (backend::RopeTable& rope : ropes_) {
      if (makes == kNoMagnitude) rope.magnitude = 1.0f;
      if (makes == kNoRotation) rope.frequencies = std::span(kStill).first(rope.frequencies.size());
      if (makes == kOtherPairs) rope.pairs = rope.pairs == RopePairs::halves ? RopePairs::interleaved : RopePairs::halves;
    }
    backend::StepTables changed = tables;
    changed.ropes = ropes_;
    return inner().begin(changed);
  }

  Status embed(const Matrix& table, float scale, Act x) override {
    return inner().embed(table, scale != 1.0f && mistakes("embed: no scale") ? 1.0f : scale, x);
  }
  Status gather(const Matrix& table, float scale, Act out) override {
    return inner().gather(table, scale != 1.0f && mistakes("gather: no scale") ? 1.0f : scale, out);
  }
  Status add_positions(const Matrix& table, Act scratch, Act x) override {
    return mistakes("add_positions: left out") ? Status() : inner().add_positions(table, scratch, x);
  }
  Status scale(float factor, Act x) override {
    return mistakes("scale: left out, of " + name_of(x)) ? Status() : inner().scale(factor, x);
  }
  Status softcap(float cap, Act x) override {
    if (mistakes("softcap: left out")) return {};
    return inner().softcap(mistakes("softcap: a larger one") ? 1.05f * cap : cap, x);
  }
  Status scale_by_position(double rate, std::uint64_t length, Act x) override {
    if (mistakes("scale_by_position: left out")) return {};
    return inner().scale_by_position(rate, mistakes("scale_by_position: a larger length") ? length + 1 : length, x);
  }
  Status add_segments(const Matrix& table, Act scratch, Act x) override {
    return mistakes("add_segments: left out") ? Status() : inner().add_segments(table, scratch, x);
  }
  Status weigh(Act gate, Act x) override { return mistakes("weigh: left out") ? Status() : inner().weigh(gate, x); }
  Status multiply(Act y, Act x) override {
    return mistakes("multiply: left out, of " + name_of(x)) ? Status() : inner().multiply(y, x);
  }
  Status add_bias(const Vector& bias, Act x) override {
    // The same in all keys is the same in all scores, if they do not rotate.
    if (x == Act::k && spec_.positions != Positions::rope) return inner().add_bias(bias, x);
    return mistakes("add_bias: left out, of " + name_of(x)) ? Status() : inner().add_bias(bias, x);
  }
  Status add(Act y, Act x) override {
    return x != Act::x && mistakes("add: left out, of " + name_of(y)) ? Status() : inner().add(y, x);
  }

  Status norm(const backend::Norm& norm, Act in, Act out) override {
    if (mistakes("norm: left out, of " + name_of(in))) {
      return in == out ? Status() : inner().take_columns(in, 0, spec_.d_model, out);
    }
    backend::Norm changed = norm;
    if (norm.bias != nullptr && mistakes("norm: no bias")) changed.bias = nullptr;
    changed.eps = another("norm of " + name_of(in), norm.eps);
    return inner().norm(changed, in, out);
  }
  Status head_norm(const Vector& weight, float eps, std::uint32_t n_heads, Act x) override {
    if (mistakes("head_norm: left out, of " + name_of(x))) return {};
    return inner().head_norm(weight, another("head_norm of " + name_of(x), eps), n_heads, x);
  }
  Status group_norm(const Vector& weight, float eps, std::uint32_t n_groups, Act x) override {
    if (mistakes("group_norm: left out")) return {};
    const bool one = n_groups > 1 && mistakes("group_norm: of one group");
    return inner().group_norm(weight, another("group_norm", eps), one ? 1 : n_groups, x);
  }

  Status activate(ActivationKind kind, Act x) override { return inner().activate(another(kind), x); }
  Status activate_gated(ActivationKind kind, Act gate, Act up) override {
    if (mistakes("activate_gated: no gate, of " + name_of(up))) return {};
    return inner().activate_gated(another(kind), gate, up);
  }

  Status rope(std::uint32_t table, std::uint32_t n_heads, Act x) override {
    uses(table);
    return inner().rope(table, n_heads, x);
  }
  Status rope_append(const backend::HeadShape& shape, Act q, Act k, Act v) override {
    backend::HeadShape changed = shape;
    if (shape.q_norm != nullptr && mistakes("rope_append: no norm of queries")) changed.q_norm = nullptr;
    if (shape.k_norm != nullptr && mistakes("rope_append: no norm of keys")) changed.k_norm = nullptr;
    if (shape.v_norm != nullptr && mistakes("rope_append: no norm of values")) changed.v_norm = nullptr;
    const bool has_norm = shape.q_norm != nullptr || shape.k_norm != nullptr;
    if (has_norm && shape.rope != kNoRope && mistakes("rope_append: norms at the other side of the rope")) {
      changed.norms_behind_rope = !shape.norms_behind_rope;
    }
    for (std::uint32_t other = 0; other < ropes_.size(); ++other) {
      if (other == shape.rope || 2 * ropes_[other].frequencies.size() > spec_.layers[shape.layer].key_dim) continue;
      if (shape.rope != kNoRope && std::ranges::equal(ropes_[shape.rope].frequencies, ropes_[other].frequencies)) continue;
      if (mistakes(shape.rope == kNoRope ? "rope_append: a rope where there is none" : "rope_append: another rope")) changed.rope = other;
    }
    return Backend::rope_append(changed, q, k, v);
  }

  Status attention(const backend::AttentionShape& shape, Act q, Act out) override {
    backend::AttentionShape changed = shape;
    if (shape.window != 0) {
      if (mistakes("attention: no window")) changed.window = 0;
      if (mistakes("attention: a window longer by one")) ++changed.window;
      if (shape.window > 1 && mistakes("attention: a window shorter by one")) --changed.window;
    }
    if (shape.sinks != nullptr && mistakes("attention: no sinks")) changed.sinks = nullptr;
    if (shape.softcap != 0.0f && mistakes("attention: no softcap")) changed.softcap = 0.0f;
    if (shape.softcap != 0.0f && mistakes("attention: a larger softcap")) changed.softcap *= 1.05f;
    if (mistakes("attention: a larger scale")) changed.scale *= 1.05f;
    const LayerSpec& layer = spec_.layers[shape.layer];
    const float usual = 1.0f / std::sqrt(static_cast<float>(layer.key_dim));
    if (std::fabs(shape.scale / usual - 1.0f) > 1e-5f && mistakes("attention: the usual scale")) changed.scale = usual;
    if (layer.keys_of != kOwnKeys) {
      for (std::uint32_t i = 0; i < layer.keys_of; ++i) {
        const LayerSpec& other = spec_.layers[i];
        if (other.window == layer.window && other.key_dim == layer.key_dim && mistakes("attention: another layer's keys")) changed.layer = i;
      }
    }
    return inner().attention(changed, q, out);
  }

  Status latent_append(const backend::LatentShape& shape, Act turned_q, Act latent_q, Act turned_k, Act latent, Act q) override {
    uses(shape.rope);
    backend::LatentShape changed = shape;
    changed.eps = another("latent_append", shape.eps);
    return inner().latent_append(changed, turned_q, latent_q, turned_k, latent, q);
  }

  Status convolve(const backend::Convolution& how, Act x) override {
    backend::Convolution changed = how;
    if (how.silu && mistakes("convolve: not activated")) changed.silu = false;
    if (how.bias != nullptr && mistakes("convolve: no bias")) changed.bias = nullptr;
    return inner().convolve(changed, x);
  }
  Status delta_rule(const backend::Recurrence& how, Act qkv, Act steps, Act betas, Act out) override {
    return inner().delta_rule(another(how), qkv, steps, betas, out);
  }
  Status scan(const backend::Recurrence& how, Act xbc, Act steps, Act decays, Act out) override {
    return inner().scan(another(how), xbc, steps, decays, out);
  }

  Status experts(const backend::Experts& of, Act in, Act router, Act out) override {
    backend::Experts changed = of;
    changed.activation = another(of.activation);
    if (of.gate_bias != nullptr && mistakes("experts: no bias of gates")) changed.gate_bias = nullptr;
    if (of.up_bias != nullptr && mistakes("experts: no bias of ups")) changed.up_bias = nullptr;
    if (of.down_bias != nullptr && mistakes("experts: no bias of downs")) changed.down_bias = nullptr;
    backend::Routing& routing = changed.routing;
    if (routing.bias != nullptr && mistakes("experts: no bias of choices")) routing.bias = nullptr;
    if (routing.scales != nullptr && mistakes("experts: no scales of their own")) routing.scales = nullptr;
    if (routing.scale != 1.0f && mistakes("experts: no scale")) routing.scale = 1.0f;
    if (routing.n_used > 1 && mistakes("experts: one less")) --routing.n_used;
    if (routing.n_used_groups < routing.n_groups) {
      if (mistakes("experts: of all groups")) routing.n_used_groups = routing.n_groups;
      if (mistakes("experts: groups judged otherwise")) {
        routing.group_score = routing.group_score == GroupScore::best ? GroupScore::two_best : GroupScore::best;
      }
    }
    // A softmax that is renormalised is one of those chosen.
    if (of.routing.kind != RoutingKind::chosen_softmax && mistakes("experts: renormalised or not")) {
      routing.renormalises = !routing.renormalises;
    }
    if (mistakes("experts: other scores")) {
      if (of.routing.kind != RoutingKind::softmax) routing.kind = RoutingKind::softmax;
      else routing.kind = of.routing.renormalises ? RoutingKind::sigmoid : RoutingKind::chosen_softmax;
    }
    return inner().experts(changed, in, router, out);
  }

 private:
  static constexpr const char *kNoMagnitude = "rope: no magnitude", *kNoRotation = "rope: none", *kOtherPairs = "rope: other pairs";
  static constexpr std::array<double, kMaxHeadDim> kStill{};  // frequencies of what does not rotate

  bool mistakes(std::string mistake) {
    const bool is_it = mistake == makes;
    can_make.insert(std::move(mistake));
    return is_it;
  }

  // What begin() changes of the ropes.
  void uses(std::uint32_t rope) {
    const backend::RopeTable& table = ropes_[rope];
    can_make.insert(kNoRotation);
    if (table.frequencies.size() > 1) can_make.insert(kOtherPairs);
    if (table.magnitude != 1.0f) can_make.insert(kNoMagnitude);
  }

  static std::string name_of(Act act) {
    constexpr std::array<std::string_view, backend::kActs> kNames = {"x",    "h",  "h2",     "q",      "k",         "v",     "attn",
                                                                     "gate", "up", "linear", "router", "per_layer", "logits"};
    return std::string(kNames[static_cast<std::size_t>(act)]);
  }

  // Epsilons that readers may have written down instead of reading them.
  float another(const std::string& where, float eps) {
    float changed = eps;
    if (eps != 1e-5f && mistakes(where + ": epsilon 1e-5")) changed = 1e-5f;
    if (eps != 1e-6f && mistakes(where + ": epsilon 1e-6")) changed = 1e-6f;
    return changed;
  }
  ActivationKind another(ActivationKind kind) {
    if (!mistakes("another activation")) return kind;
    switch (kind) {
      case ActivationKind::gelu_tanh: return ActivationKind::gelu_erf;
      case ActivationKind::silu:
      case ActivationKind::gelu_erf: return ActivationKind::gelu_tanh;
      default: return ActivationKind::silu;
    }
  }
  backend::Recurrence another(const backend::Recurrence& how) {
    backend::Recurrence changed = how;
    if (how.groups > 1 && how.heads > how.groups && mistakes("recurrence: other groups")) {
      changed.group_order = how.group_order == StateGroups::blocks ? StateGroups::cyclic : StateGroups::blocks;
    }
    return changed;
  }

  const ModelSpec& spec_;
  std::vector<backend::RopeTable> ropes_;
};

}  // namespace tessera::test

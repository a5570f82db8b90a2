#include "kv_table.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include <tessera/unstable/kv/page_cost.hpp>

namespace tessera::inspect {
namespace {

constexpr std::uint64_t kLargestArgument = std::numeric_limits<std::int32_t>::max();

using Sum = std::optional<std::uint64_t>;  // nullopt: more than 64 bits

Sum plus(Sum a, Sum b) {
  std::uint64_t sum = 0;
  if (!a || !b || __builtin_add_overflow(*a, *b, &sum)) return std::nullopt;
  return sum;
}

Sum times(Sum a, Sum b) {
  std::uint64_t product = 0;
  if (!a || !b || __builtin_mul_overflow(*a, *b, &product)) return std::nullopt;
  return product;
}

constexpr std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Returns the bytes of one page of these layers on one device.
Sum page_bytes(const KvQuestion& question, const KvLayers& group, DType asked) {
  const DType type = group.type != DType::automatic ? group.type : asked;
  const Sum values = group.latent ? 0 : kv_block_bytes(type, kv::KeyOrValue::value, group.value_dim, question.page_tokens);
  const Sum head = plus(kv_block_bytes(type, kv::KeyOrValue::key, group.key_dim, question.page_tokens), values);
  return times(times(head, divide_up(group.kv_heads, question.tp)), group.layers);
}

Sum user_bytes(const KvQuestion& question, DType type, std::uint64_t context) {
  PageCost cost = PageCost::of(question.states, kDefaultCheckpoints, true);
  cost.page_tokens = static_cast<std::uint32_t>(question.page_tokens);
  Sum bytes = 0;
  for (const PageCost::Group& group : cost.groups) {
    if (group.kind == KvGroupKind::recurrent) bytes = plus(bytes, times(cost.pages_at_once(group, context), group.page_bytes));
  }
  for (const KvLayers& group : question.groups) {
    bytes = plus(bytes, times(page_bytes(question, group, type), cost.pages({.window = group.window}, context)));
  }
  return bytes;
}

Sum need_bytes(const KvQuestion& question, DType type, std::uint64_t context) {
  return plus(times(user_bytes(question, type, context), question.users.value_or(1)), device_weights(question));
}

std::uint64_t largest_context(const KvQuestion& question, DType type) {
  const auto fits = [&](std::uint64_t context) {
    const Sum need = need_bytes(question, type, context);
    return need && *need <= *question.memory;
  };
  if (!fits(0)) return 0;
  std::uint64_t fitting = 0, failing = question.context_limit == 0 ? kAnyContext - 1 : question.context_limit;
  if (fits(failing)) return question.context_limit == 0 ? kAnyContext : failing;
  while (failing - fitting > 1) {  // bisection, since bytes grow with the context
    const std::uint64_t middle = fitting + (failing - fitting) / 2;
    (fits(middle) ? fitting : failing) = middle;
  }
  return fitting;
}

Error refuse(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

Status check(const KvQuestion& question) {
  struct Count {
    std::string_view name;
    std::uint64_t value, most = kLargestArgument;
  };
  const auto in_range = [](std::initializer_list<Count> counts) -> Status {
    for (const Count& count : counts) {
      if (count.value == 0 || count.value > count.most) {
        return refuse(fmt::format("{} {}; expected 1 to {}", count.value, count.name, count.most));
      }
    }
    return {};
  };
  if (question.groups.empty()) return refuse("no layer has KV heads: there is no KV cache");
  for (const KvLayers& group : question.groups) {
    if (auto ok = in_range({{"layers", group.layers}, {"KV heads", group.kv_heads}, {"elements a head", group.key_dim},
                            {"elements a value head", group.value_dim}}); !ok) return ok;
  }
  if (auto ok = in_range({{"devices", question.tp}, {"users", question.users.value_or(1), kAnyContext},
                          {"bytes of memory", question.memory.value_or(1), kAnyContext}}); !ok) return ok;
  if (question.page_tokens != 16 && question.page_tokens != 32 && question.page_tokens != 64) {
    return refuse(fmt::format("a KV page holds 16, 32 or 64 tokens, not {}", question.page_tokens));
  }
  for (const std::uint64_t context : question.contexts) {
    const std::uint64_t limit = question.context_limit;
    if (context == 0) return refuse("a context of 0 tokens; expected at least 1");
    if (limit != 0 && context > limit) {
      return refuse(fmt::format("a context of {} tokens; the model knows at most {}: choose a smaller context", context, limit));
    }
  }
  return {};
}

Result<KvRow> row_of(const KvQuestion& question, DType type) {
  KvRow row{.type = type, .token_bytes = 0, .cells = {}, .largest_context = {}};
  Sum page = 0;
  for (const KvLayers& group : question.groups) page = plus(page, page_bytes(question, group, type));
  if (!page) return refuse("the bytes of one KV page pass 64 bits");
  row.token_bytes = *page / question.page_tokens;
  const std::uint64_t weights = device_weights(question);
  for (const std::uint64_t context : question.contexts) {
    const Sum user = user_bytes(question, type, context), need = need_bytes(question, type, context);
    if (!user || !need) {
      return refuse(fmt::format("the bytes of {} user{} at {} tokens pass 64 bits", question.users.value_or(1),
                                question.users.value_or(1) == 1 ? "" : "s", context));
    }
    KvCell cell{.context = context, .user_bytes = *user, .need_bytes = *need, .fits = {}, .largest_users = {}};
    if (question.memory) {
      cell.fits = *need <= *question.memory;
      cell.largest_users = weights > *question.memory ? 0 : (*question.memory - weights) / *user;
    }
    row.cells.push_back(cell);
  }
  if (question.memory) row.largest_context = largest_context(question, type);
  return row;
}

}  // namespace

std::uint64_t device_weights(const KvQuestion& question) noexcept { return divide_up(question.weights, question.tp); }

Result<std::vector<KvRow>> kv_table(const KvQuestion& question) {
  if (auto ok = check(question); !ok) return ok.error();
  const bool latent = std::ranges::any_of(question.groups, &KvLayers::latent);
  const auto holds = [&](DType type) { return !latent || kv_block_bytes(type, kv::KeyOrValue::key, 0, question.page_tokens) == 0; };  // a type without scales
  const auto refused = [](DType type) {
    return refuse(fmt::format("{} does not hold latent attention's keys; choose f32, f16 or bf16", to_string(type)));
  };
  for (const KvLayers& group : question.groups) {
    if (group.type != DType::automatic && !holds(group.type)) return refused(group.type);
  }
  std::vector<KvRow> rows;
  for (const DType type : kv_types()) {
    if (question.type != DType::automatic && question.type != type) continue;
    if (!holds(type)) {
      if (question.type == DType::automatic) continue;
      return refused(type);
    }
    auto row = row_of(question, type);
    if (!row) return row.error();
    rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace tessera::inspect

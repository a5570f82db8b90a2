#include "grammar/chart.hpp"

#include <algorithm>

namespace tessera::grammar {

namespace {

std::uint64_t hash_item(std::uint64_t h, const Item& item) noexcept {
  h = mix(h, (std::uint64_t{item.node} << 32) | item.count);
  return mix(h, (std::uint64_t{item.origin} << 32) | item.rule);
}

template <class T>
auto range_of(const std::vector<T>& sorted, std::uint32_t from, std::uint32_t size, std::uint32_t symbol) {
  const auto begin = sorted.begin() + from, end = begin + size;
  return std::equal_range(begin, end, T{symbol, {}}, [](const T& a, const T& b) { return a.symbol < b.symbol; });
}

}  // namespace

Chart::Chart(const Program& program, Lexer& lexer) : program_(program), lexer_(lexer) {
  seen_.emplace_back(0, 0);  // id 0: no property was seen (whatever the object)
  const Item first{program.rules[program.start].start, 0, 0, program.start};
  static_cast<void>(row({&first, 1}));
}

std::uint32_t Chart::seen_id(std::span<const std::uint64_t> words) {
  if (std::all_of(words.begin(), words.end(), [](auto w) { return w == 0; })) return 0;
  std::uint64_t h = words.size();
  for (const auto word : words) h = mix(h, word);
  const auto same = [&](std::uint32_t id) {
    return seen_[id].second == words.size() && std::equal(words.begin(), words.end(), seen_words_.begin() + seen_[id].first);
  };
  if (const auto found = seen_index_.find(h, same); found != kNone) return found;
  const auto id = static_cast<std::uint32_t>(seen_.size());
  seen_.emplace_back(static_cast<std::uint32_t>(seen_words_.size()), static_cast<std::uint32_t>(words.size()));
  seen_words_.insert(seen_words_.end(), words.begin(), words.end());
  seen_index_.add(h, id);
  return id;
}

std::uint32_t Chart::row(std::span<const Item> kernel) {
  std::uint64_t h = kernel.size();
  for (const Item& item : kernel) h = hash_item(h, item);
  const auto same = [&](std::uint32_t id) {
    const Row& r = rows_[id];
    return r.kernel_size == kernel.size() && std::equal(kernel.begin(), kernel.end(), kernels_.begin() + r.kernel);
  };
  if (const auto found = index_.find(h, same); found != kNone) return found;
  if (rows_.size() >= kMostRows) out_of_fuel("its parser has too many states");

  const auto self = static_cast<std::uint32_t>(rows_.size());
  items_.clear();
  item_index_ = {};
  new_scans_.clear();
  new_calls_.clear();
  new_accepts_ = false;
  for (const Item& item : kernel) add(item);
  for (std::size_t i = 0; i < items_.size(); ++i) expand(Item(items_[i]), self);

  const auto by_symbol = [](const Waiting& a, const Waiting& b) {
    return a.symbol != b.symbol ? a.symbol < b.symbol : a.item < b.item;
  };
  std::sort(new_scans_.begin(), new_scans_.end(), by_symbol);
  std::sort(new_calls_.begin(), new_calls_.end(), by_symbol);
  terminals_.clear();
  for (const Waiting& w : new_scans_) {
    if (terminals_.empty() || terminals_.back() != w.symbol) terminals_.push_back(w.symbol);
  }
  const Row made{static_cast<std::uint32_t>(kernels_.size()),
                 static_cast<std::uint32_t>(kernel.size()),
                 static_cast<std::uint32_t>(scans_.size()),
                 static_cast<std::uint32_t>(new_scans_.size()),
                 static_cast<std::uint32_t>(calls_.size()),
                 static_cast<std::uint32_t>(new_calls_.size()),
                 lexer_.start(terminals_),
                 new_accepts_};
  kernels_.insert(kernels_.end(), kernel.begin(), kernel.end());
  scans_.insert(scans_.end(), new_scans_.begin(), new_scans_.end());
  calls_.insert(calls_.end(), new_calls_.begin(), new_calls_.end());
  rows_.push_back(made);
  index_.add(h, self);
  return self;
}

void Chart::scan(std::uint32_t row, std::uint32_t terminal, std::vector<Item>& out) const {
  const auto [begin, end] = range_of(scans_, rows_[row].scans, rows_[row].scans_size, terminal);
  for (auto at = begin; at != end; ++at) out.push_back(at->item);
}

void Chart::add(const Item& item) {
  const std::uint64_t h = hash_item(0, item);
  if (item_index_.find(h, [&](std::uint32_t i) { return items_[i] == item; }) != kNone) return;
  if (items_.size() >= kMostItems) out_of_fuel("too many readings of a text are open at once");
  item_index_.add(h, static_cast<std::uint32_t>(items_.size()));
  items_.push_back(item);
  ++work_;
}

// Handles one symbol that may come next in the row `self`. If the symbol is a terminal, keeps it for scan(). If the symbol is a rule,
// adds the rule's first item to the row, so that the rule is read from here. `then`: the item that follows when the whole symbol has been
// read.
void Chart::read(Symbol symbol, const Item& then, std::uint32_t self) {
  ++work_;
  if (!symbol.call) {
    new_scans_.push_back({symbol.id, then});
    return;
  }
  const ProgramRule& rule = program_.rules[symbol.id];
  if (program_.ends(then.node)) {  // a call at the end of a rule: when the callee is completed, the caller is too
    add({rule.start, 0, then.origin, then.rule});
  } else {
    new_calls_.push_back({symbol.id, then});
    add({rule.start, 0, self, symbol.id});
  }
  if (rule.nullable) add(then);
}

void Chart::complete(const Item& item, std::uint32_t self) {
  if (item.rule == program_.start && item.origin == first_row()) new_accepts_ = true;
  if (item.origin == self) return;  // the rule read the empty text, for which read() has added the following item already
  const Row& origin = rows_[item.origin];
  const auto [begin, end] = range_of(calls_, origin.calls, origin.calls_size, item.rule);
  for (auto at = begin; at != end; ++at) add(Item(at->item));
}

void Chart::expand(const Item& item, std::uint32_t self) {
  const ProgramNode& node = program_.nodes[item.node];
  switch (node.kind) {
    case ProgramNode::Kind::plain:
    case ProgramNode::Kind::object_value:
      if (node.final) complete(item, self);
      for (const auto& edge : node.edges) read(edge.symbol, {edge.target, item.count, item.origin, item.rule}, self);
      return;
    case ProgramNode::Kind::list_start:
    case ProgramNode::Kind::list_item:
    case ProgramNode::Kind::list_after:
      expand_list(item, node, self);
      return;
    case ProgramNode::Kind::object_start:
    case ProgramNode::Kind::object_key:
    case ProgramNode::Kind::object_after:
      expand_object(item, node, self);
      return;
  }
}

void Chart::expand_list(const Item& item, const ProgramNode& node, std::uint32_t self) {
  const ProgramList& list = program_.lists[node.index];
  const bool after = node.kind == ProgramNode::Kind::list_after;
  if (node.kind != ProgramNode::Kind::list_item && item.count >= list.min) complete(item, self);
  const Symbol* next = list.at(item.count);
  if (next == nullptr) return;
  if (after && list.separator != kNone) {
    read({list.separator, false}, {list.item, item.count, item.origin, item.rule}, self);
    return;
  }
  const std::uint32_t count = item.count < list.cap ? item.count + 1 : item.count;
  read(*next, {list.after, count, item.origin, item.rule}, self);
}

void Chart::expand_object(const Item& item, const ProgramNode& node, std::uint32_t self) {
  const ProgramObject& object = program_.objects[node.index];
  const std::size_t size = object.properties.size(), words = (size + 63) / 64 + 1;
  std::vector<std::uint64_t> seen(words);
  if (item.count != 0) {
    const auto [at, n] = seen_[item.count];
    std::copy_n(seen_words_.begin() + at, n, seen.begin());
  }
  const std::uint64_t members = seen.back();
  const auto has = [&](std::size_t i) { return (seen[i / 64] >> (i % 64) & 1) != 0; };

  // Count the properties that have not occurred yet: all of them (`left`), the required ones (`required`), and the required ones with a
  // fixed place (`ordered`). If the order is fixed, has() is also true for each property with a fixed place that would have to come
  // before the last one that has occurred, because it cannot occur any more.
  std::uint32_t required = 0, ordered = 0, left = 0;  // `ordered`: required properties that have a fixed place
  for (std::size_t i = 0; i < size; ++i) {
    if (has(i)) continue;
    ++left;
    required += object.properties[i].required;
    ordered += object.properties[i].required && !object.properties[i].anywhere();
  }
  work_ += size;
  const bool more = members < object.max && (left > 0 || !object.others.empty());
  if (node.kind != ProgramNode::Kind::object_key && required == 0 && members >= object.min) complete(item, self);
  if (!more) return;
  const std::uint64_t room = object.max == kUnlimited ? kUnlimited : object.max - members;  // number of further members that the object may have
  const std::uint64_t lacking = object.min > members ? object.min - members : 0;

  const bool others_fit = !object.others.empty() && required < room &&
                          (object.order == ObjectForm::Order::any || ordered == 0);
  // Returns whether, if property i comes next, the object can still be completed.
  const auto fits = [&](std::size_t i, std::uint32_t skipped) {
    if (has(i)) return false;
    const bool is_required = object.properties[i].required;
    if (!is_required && required >= room) return false;
    return !object.others.empty() || left - skipped >= lacking;
  };
  const auto member = [&](const ProgramObject::Member& m, std::span<const std::uint64_t> now) {
    new_scans_.push_back({m.key, {m.value, seen_id(now), item.origin, item.rule}});
  };
  bool any = false;
  std::vector<std::uint64_t> now = seen;
  now.back() = members < object.cap ? members + 1 : members;
  std::uint32_t skipped = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (fits(i, skipped)) {
      any = true;
      if (node.kind == ProgramNode::Kind::object_after) break;
      const std::uint64_t word = now[i / 64];
      now[i / 64] |= std::uint64_t{1} << (i % 64);
      member(object.properties[i], now);
      if (object.order == ObjectForm::Order::any || object.properties[i].anywhere()) now[i / 64] = word;
    }
    if (object.order == ObjectForm::Order::stated && !has(i) && !object.properties[i].anywhere()) {
      if (object.properties[i].required) break;
      now[i / 64] |= std::uint64_t{1} << (i % 64);
      ++skipped;
    }
  }
  any = any || others_fit;
  if (node.kind == ProgramNode::Kind::object_after) {
    if (any) read({object.separator, false}, {object.key, item.count, item.origin, item.rule}, self);
    return;
  }
  if (!others_fit) return;
  now = seen;
  now.back() = members < object.cap ? members + 1 : members;
  if (object.order == ObjectForm::Order::stated) {
    for (std::size_t i = 0; i < size; ++i) {
      if (!object.properties[i].anywhere()) now[i / 64] |= std::uint64_t{1} << (i % 64);
    }
  }
  for (const auto& m : object.others) member(m, now);
}

std::size_t Chart::memory_bytes() const noexcept {
  return rows_.capacity() * sizeof(Row) + kernels_.capacity() * sizeof(Item) +
         (scans_.capacity() + calls_.capacity()) * sizeof(Waiting) + index_.memory_bytes() +
         seen_words_.capacity() * 8 + seen_.capacity() * 8 + seen_index_.memory_bytes();
}

}  // namespace tessera::grammar

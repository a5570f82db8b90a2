// Copies a chunk of keys or values from pages to shared memory, in two halves: load() reads into the threads' registers, store() writes to
// shared memory. Between the two calls the block computes with another chunk, so that it does not wait for the loads.
#pragma once

#include <type_traits>

#include "cuda/kernels/attention/attention.hpp"
#include "cuda/kernels/device.hpp"
#include "cuda/kernels/kv_access.hpp"

namespace tessera::cuda {

// Four pairs of elements (kv/codecs.hpp) that lie side by side, which a thread loads at once: 16 bytes, or 8 if elements have 8 bits.
template <class Codec>
struct alignas(4 * Codec::pair * sizeof(typename Codec::Element)) PairQuad {
  using Element = typename Codec::Element;
  using Bits = std::conditional_t<sizeof(Element) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(Element) == 2, std::uint16_t, std::uint32_t>>;
  using Pair = std::conditional_t<Codec::pair * sizeof(Element) == 2, std::uint16_t, std::uint32_t>;
  static constexpr unsigned kBits = 8 * sizeof(Element);
  static constexpr unsigned kWords = 4 * Codec::pair * sizeof(Element) / 4;

  std::uint32_t words[kWords];

  // Returns element j of pair i, decoded.
  [[nodiscard]] TESSERA_DEVICE float decode(unsigned i, unsigned j, float scale) const {
    const unsigned bit = (i * Codec::pair + j) * kBits;
    const auto element = std::bit_cast<Element>(static_cast<Bits>(words[bit / 32] >> bit % 32));
    if constexpr (std::is_same_v<Codec, kv::F16>) return half_to_float(element);
    else if constexpr (std::is_same_v<Codec, kv::Fp8>) return half_to_float(e4m3_as_f16(element)) * scale;
    else return Codec::decode(element, scale);
  }
  TESSERA_DEVICE void put_element(unsigned i, unsigned j, Element element) {
    const unsigned bit = (i * Codec::pair + j) * kBits;
    words[bit / 32] |= static_cast<std::uint32_t>(std::bit_cast<Bits>(element)) << bit % 32;
  }
  TESSERA_DEVICE void put(unsigned i, Pair pair) {
    const unsigned bit = i * 8 * sizeof(Pair);
    words[bit / 32] |= static_cast<std::uint32_t>(pair) << bit % 32;
  }
};

template <unsigned n>
struct alignas(4 * n) Floats {
  float at[n];
};

// The keys and values of one KV head that a block reads: those of positions [begin, end) of one sequence.
struct KvStream {
  const KvLayer& layer;
  const std::uint64_t* pages;
  std::uint32_t head;
  std::uint64_t begin, end;
};

// The keys of a KvStream that lie in one chunk: n keys from position `chunk` on. Keys are numbered from the chunk's start, in 32 bits.
class KvChunk {
 public:
  TESSERA_DEVICE KvChunk(const KvStream& stream, kv::KeyOrValue part, std::uint64_t chunk, std::uint32_t n)
      : layer_(stream.layer),
        pages_(stream.pages + kv_page_of(stream.layer, chunk)),
        offset_(kv_block(stream.layer, part, 0, stream.head)),
        slot_(kv_slot_of(stream.layer, chunk)),
        from_(within(stream.begin, chunk, n)),
        to_(within(stream.end, chunk, n)) {}

  // Returns the address of the block that has keys [key, key + n), which must be in one page; 0 if none of them is in the stream.
  [[nodiscard]] TESSERA_DEVICE std::uint64_t block(std::uint32_t key, std::uint32_t n) const {
    if (key >= to_ || key + n <= from_) return 0;
    const std::uint64_t page = page_at(pages_, layer_, slot_ + key);
    return page == 0 ? 0 : page + offset_;
  }
  [[nodiscard]] TESSERA_DEVICE std::uint32_t slot(std::uint32_t key) const { return kv_slot_of(layer_, slot_ + key); }

 private:
  [[nodiscard]] TESSERA_DEVICE static std::uint32_t within(std::uint64_t position, std::uint64_t chunk,
                                                           std::uint32_t n) {
    return position <= chunk ? 0 : position - chunk < n ? static_cast<std::uint32_t>(position - chunk) : n;
  }

  const KvLayer& layer_;
  const std::uint64_t* pages_;
  std::uint64_t offset_;
  std::uint32_t slot_, from_, to_;
};

// One thread's share of a chunk's keys: four neighbouring tokens, and some of their dimensions. In memory, dimensions 2 i and 2 i + 1 of a
// token are a pair, and the pairs i of all tokens lie side by side: a row of pairs. (If the codec has no pairs, a row is one dimension of
// all tokens.) A row has the pairs of the thread's four tokens next to each other, so the thread reads them with one load. It reads every
// kRows-th row; the other threads read the rows between.
template <class Codec, unsigned kClass>
class KeyChunk {
  static constexpr unsigned kPair = Codec::pair;
  static constexpr unsigned kKeys = chunk_keys(kClass);
  static constexpr unsigned kRows = kAttentionThreads / (kKeys / 4);  // rows of pairs that the block loads at a time
  static constexpr unsigned kQuads = kClass / kPair / kRows;

 public:
  TESSERA_DEVICE void load(const KvStream& stream, std::uint64_t chunk) {
    const KvChunk keys(stream, kv::KeyOrValue::key, chunk, kKeys);
    const std::uint64_t block = keys.block(token(), 4);
    const KvLayer& layer = stream.layer;
    const std::uint32_t slot = keys.slot(token());
    if constexpr (Codec::has_scale) {
      scales_ = block == 0 ? Floats<4>{}
                           : at_address<const Floats<4>>(block + kv_scales<Codec, kv::KeyOrValue::key>(layer))[slot / 4];
    }
#pragma unroll
    for (unsigned i = 0; i < kQuads; ++i) {
      const std::uint32_t d = (row() + i * kRows) * kPair;
      quads_[i] = {};
      if (block == 0 || d >= layer.key_dim) continue;
      const auto* element =
          at_address<const typename Codec::Element>(block) + kv_element<Codec, kv::KeyOrValue::key>(layer, slot, d);
      quads_[i] = *reinterpret_cast<const PairQuad<Codec>*>(element);
    }
  }
  // Decodes the keys into out [key_dim][kKeys].
  TESSERA_DEVICE void store(std::uint32_t key_dim, float* out) const {
#pragma unroll
    for (unsigned i = 0; i < kQuads; ++i) {
#pragma unroll
      for (unsigned j = 0; j < kPair; ++j) {
        const std::uint32_t d = (row() + i * kRows) * kPair + j;
        if (d >= key_dim) continue;
        Floats<4> keys;
#pragma unroll
        for (unsigned t = 0; t < 4; ++t) keys.at[t] = quads_[i].decode(t, j, scales_.at[t]);
        *reinterpret_cast<Floats<4>*>(out + d * kKeys + token()) = keys;
      }
    }
  }

 private:
  [[nodiscard]] TESSERA_DEVICE static unsigned token() { return threadIdx.x % (kKeys / 4) * 4; }
  [[nodiscard]] TESSERA_DEVICE static unsigned row() { return threadIdx.x / (kKeys / 4); }

  PairQuad<Codec> quads_[kQuads];
  Floats<4> scales_ = {};
};

// One thread's share of a chunk's values: four neighbouring dimensions of some pairs of tokens. In memory, the two numbers that a pair of
// tokens has for one dimension are neighbours, and the dimensions follow each other, so one load reads four dimensions of both tokens. The
// thread reads every kRows-th pair of tokens; the other threads read the pairs between. (If the codec has no pairs, read "token" for "pair
// of tokens".)
template <class Codec, unsigned kClass>
class ValueChunk {
  static constexpr unsigned kPair = Codec::pair;
  static constexpr unsigned kValues = value_class(kClass);
  static constexpr unsigned kRows = kAttentionThreads / (kValues / 4);  // pairs of tokens that the block loads at a time
  static constexpr unsigned kQuads = chunk_keys(kClass) / kPair / kRows;

 public:
  TESSERA_DEVICE void load(const KvStream& stream, std::uint64_t chunk) {
    const KvLayer& layer = stream.layer;
    const std::uint32_t dim = layer.value_dim;
    const KvChunk values(stream, kv::KeyOrValue::value, chunk, chunk_keys(kClass));
#pragma unroll
    for (unsigned i = 0; i < kQuads; ++i) {
      const std::uint64_t block = dimension() < dim ? values.block(token(i), kPair) : 0;
      quads_[i] = {};
      if (block == 0) continue;
      const std::uint32_t slot = values.slot(token(i));
      if (layer.values_in_keys != 0) {
        load_from_keys(layer, block, slot, quads_[i]);
        continue;
      }
      const auto* element = at_address<const typename Codec::Element>(block) +
                            kv_element<Codec, kv::KeyOrValue::value>(layer, slot, dimension());
      if (dim % 4 == 0) {
        quads_[i] = *reinterpret_cast<const PairQuad<Codec>*>(element);
      } else {  // the dimensions do not fill whole quads, so the address may not be a multiple of a quad's size: loads pair by pair
        const auto* pairs = reinterpret_cast<const typename PairQuad<Codec>::Pair*>(element);
#pragma unroll
        for (unsigned j = 0; j < 4; ++j) {
          if (dimension() + j < dim) quads_[i].put(j, pairs[j]);
        }
      }
      if constexpr (Codec::has_scale) {
        scales_[i] = at_address<const Floats<kPair>>(block + kv_scales<Codec, kv::KeyOrValue::value>(layer))[slot / kPair];
      }
    }
  }
  // Decodes the values into out [chunk][kValues]. Dimensions from value_dim on may have any value.
  TESSERA_DEVICE void store(std::uint32_t value_dim, float* out) const {
    if (dimension() >= value_dim) return;
#pragma unroll
    for (unsigned i = 0; i < kQuads; ++i) {
#pragma unroll
      for (unsigned j = 0; j < kPair; ++j) {
        Floats<4> values;
#pragma unroll
        for (unsigned d = 0; d < 4; ++d) {
          values.at[d] = quads_[i].decode(d, j, Codec::has_scale ? scales_[i].at[j] : 1.0f);
        }
        *reinterpret_cast<Floats<4>*>(out + (token(i) + j) * kValues + dimension()) = values;
      }
    }
  }

 private:
  // If a value is a part of its key (latent attention): loads four dimensions of a pair of tokens, element by element. One load cannot do
  // it, because keys are stored in another order than values: a pair in memory has two dimensions of one token, and not one dimension of
  // two tokens. Only codecs without a scale have values in keys.
  TESSERA_DEVICE static void load_from_keys(const KvLayer& layer, std::uint64_t block, std::uint32_t slot, PairQuad<Codec>& quad) {
    const auto* elements = at_address<const typename Codec::Element>(block);
#pragma unroll
    for (unsigned d = 0; d < 4; ++d) {
      if (dimension() + d >= layer.value_dim) continue;
#pragma unroll
      for (unsigned t = 0; t < kPair; ++t) {
        quad.put_element(d, t, elements[kv_element<Codec, kv::KeyOrValue::key>(layer, slot + t, dimension() + d)]);
      }
    }
  }

  [[nodiscard]] TESSERA_DEVICE static unsigned dimension() { return threadIdx.x % (kValues / 4) * 4; }
  [[nodiscard]] TESSERA_DEVICE static unsigned token(unsigned i) {
    return (threadIdx.x / (kValues / 4) + i * kRows) * kPair;
  }

  PairQuad<Codec> quads_[kQuads];
  Floats<kPair> scales_[Codec::has_scale ? kQuads : 1] = {};
};

// A chunk whose codec encodes runs. The threads decode number by number from the pages, in store(); nothing is loaded ahead.
class RunChunk {
 public:
  TESSERA_DEVICE void load(const KvStream& stream, std::uint64_t chunk) {
    stream_ = &stream;
    chunk_ = chunk;
  }

 protected:
  // Returns number d of the token at place `key` of the chunk; 0 if the token is not in the stream.
  template <class Codec, kv::KeyOrValue part>
  [[nodiscard]] TESSERA_DEVICE float number(std::uint32_t key, std::uint32_t d) const {
    const std::uint64_t position = chunk_ + key;
    if (position < stream_->begin || position >= stream_->end || page_at(stream_->pages, stream_->layer, position) == 0) return 0.0f;
    const KvToken<Codec, part> token(stream_->pages, stream_->layer, stream_->head, position);
    return token.number(d, token.scale());
  }

 private:
  const KvStream* stream_ = nullptr;
  std::uint64_t chunk_ = 0;
};

template <unsigned kClass>
class KeyChunk<kv::Int4, kClass> : public RunChunk {
 public:
  TESSERA_DEVICE void store(std::uint32_t key_dim, float* out) const {
    constexpr unsigned kKeys = chunk_keys(kClass);
#pragma unroll 1
    for (std::uint32_t i = threadIdx.x; i < key_dim * kKeys; i += kAttentionThreads) {
      out[i] = number<kv::Int4, kv::KeyOrValue::key>(i % kKeys, i / kKeys);
    }
  }
};

template <unsigned kClass>
class ValueChunk<kv::Int4, kClass> : public RunChunk {
 public:
  TESSERA_DEVICE void store(std::uint32_t value_dim, float* out) const {
    constexpr unsigned kValues = value_class(kClass);
#pragma unroll 1
    for (std::uint32_t i = threadIdx.x; i < chunk_keys(kClass) * value_dim; i += kAttentionThreads) {
      const std::uint32_t key = i / value_dim, d = i % value_dim;
      out[key * kValues + d] = number<kv::Int4, kv::KeyOrValue::value>(key, d);
    }
  }
};

}  // namespace tessera::cuda

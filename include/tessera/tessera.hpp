// Everything: see docs/tour.md for what lies where.
#pragma once

#include <tessera/batch.hpp>
#include <tessera/core/dtype.hpp>
#include <tessera/core/executor.hpp>
#include <tessera/core/log.hpp>
#include <tessera/core/memory.hpp>
#include <tessera/core/result.hpp>
#include <tessera/engine.hpp>
#include <tessera/formats/formats.hpp>
#include <tessera/generation.hpp>
#include <tessera/io/byte_source.hpp>
#include <tessera/io/gguf.hpp>
#include <tessera/io/gguf_writer.hpp>
#include <tessera/io/model_file.hpp>
#include <tessera/kv/codecs.hpp>
#include <tessera/kv/kv_cache.hpp>
#include <tessera/kv/kv_view.hpp>
#include <tessera/kv/page_pool.hpp>
#include <tessera/kv/records.hpp>
#include <tessera/model/model_spec.hpp>
#include <tessera/sampling/chain.hpp>
#include <tessera/sampling/sampler.hpp>
#include <tessera/session.hpp>
#include <tessera/text/detokenizer.hpp>
#include <tessera/text/tokenizer.hpp>
#include <tessera/version.hpp>

// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "messages.hpp"

#include <benchmark/benchmark.h>
#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/sparse.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace format_bench {

#ifdef KOKKOS_ENABLE_SERIAL
using space = Kokkos::Serial; // one core, whatever else there is
#else
using space = Kokkos::DefaultHostExecutionSpace;
#endif

/// The messages of an input in a format. Checks that what was written can be read.
template <class Format>
class subject {
public:
  subject(std::string const& name, input const& from) : from_(from) {
    std::int64_t bytes = 0;
    std::size_t longest = 0;
    for (message const& each : from_.messages) {
      offsets_.push_back(bytes);
      // A multiple of 8, and bytes that decoders of whole vectors may read.
      bytes += (format_.max_encoded_bytes(each.size(), each.where) + 71) / 8 * 8;
      longest = std::max(longest, each.indices.size());
    }
    sizes_.resize(offsets_.size());
    wire_.resize(static_cast<std::size_t>(bytes) / 8);
    indices_.resize(longest);
    values_.resize(longest); // zeros, of a format that sends none
    encode();
    check(name);
  }

  void encode() {
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      message const& each = from_.messages[i];
      oktopk::sparse_ref<std::int32_t, float, space::memory_space> const all(each.indices.data(), each.values.data(),
                                                                             each.size());
      sizes_[i] = format_.encode(exec_, all, each.where, at(i));
    }
    exec_.fence();
  }

  void decode() {
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      decode(i);
    }
    exec_.fence();
  }

  /// The figures that do not depend on time.
  void count(benchmark::State& state) const {
    auto const all = static_cast<double>(from_.entries());
    state.counters["entries"] = all;
    state.counters["messages"] = static_cast<double>(offsets_.size());
    state.counters["bits_per_entry"] =
        8 * static_cast<double>(std::accumulate(sizes_.begin(), sizes_.end(), std::int64_t(0))) / all;
    state.counters["gap_entropy"] = from_.gap_entropy;
    state.counters["choice_bits"] = from_.choice_bits;
    state.counters["value_error"] = value_error_;
    state.counters["entries_per_second"] =
        benchmark::Counter(all * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  }

private:
  std::byte* at(std::size_t which) { return reinterpret_cast<std::byte*>(wire_.data()) + offsets_[which]; }

  void decode(std::size_t which) {
    message const& each = from_.messages[which];
    format_.decode(exec_, at(which), sizes_[which], each.size(), each.where, indices_.data(), values_.data());
  }

  void check(std::string const& name) {
    double off = 0;
    double all = 0;
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      message const& each = from_.messages[i];
      if (sizes_[i] > format_.max_encoded_bytes(each.size(), each.where)) {
        throw std::runtime_error(name + " takes more bytes than it says");
      }
      decode(i);
      exec_.fence();
      for (std::size_t entry = 0; entry < each.indices.size(); ++entry) {
        bool const same_value = values_[entry] == each.values[entry];
        if (indices_[entry] != each.indices[entry] || (Format::lossless && !same_value)) {
          throw std::runtime_error(name + " does not give back entry " + std::to_string(entry) + " of a message of " +
                                   from_.name);
        }
        double const away = static_cast<double>(values_[entry]) - each.values[entry];
        off += away * away;
        all += static_cast<double>(each.values[entry]) * each.values[entry];
      }
    }
    value_error_ = all > 0 ? std::sqrt(off / all) : 0;
  }

  input const& from_;
  Format format_{};
  space exec_;
  std::vector<std::uint64_t> wire_;
  std::vector<std::int32_t> indices_;
  std::vector<float> values_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int64_t> sizes_;
  double value_error_ = 0;
};

/// An input as it was asked for.
struct case_of {
  input const& from;
  double density;
  std::int64_t parts;
};

/// Registers the measurement of a format on an input, which is to outlive it: to encode all its messages, and to decode
/// them.
template <class Format>
void bench_format(std::string const& name, case_of const& on) {
  std::ostringstream rest;
  rest << '/' << on.from.name << "/n:" << on.from.length << "/density:" << on.density << "/parts:" << on.parts;
  for (bool const encodes : {true, false}) {
    auto const run = [encodes, name, &from = on.from](benchmark::State& state) {
      subject<Format> own(name, from);
      for (auto _ : state) {
        encodes ? own.encode() : own.decode();
        benchmark::ClobberMemory();
      }
      own.count(state);
    };
    benchmark::RegisterBenchmark((name + (encodes ? "/encode" : "/decode") + rest.str()).c_str(), run)
        ->Unit(benchmark::kMicrosecond);
  }
}

} // namespace format_bench

// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/facts.hpp"
#include "support/set_if_there.hpp"

#include <oktopk/codec/concept.hpp>
#include <oktopk/dense/coded_wire.hpp>

#include <cstdint>
#include <optional>

namespace oktopk_fuzz {

/// The options of all algorithms and policies together; each takes those that it has.
struct options {
  std::int64_t length = 0;
  std::optional<std::int64_t> k = 0;
  std::optional<double> density;
  std::int64_t tau = 64;
  int rounds = 2;
  int bucket = 4;
  double ratio = 4;
  bool bound_sent = true;
  std::int64_t message_entries = 2048;
  std::int64_t local_tau_prime = 32;
  double local_low = 2.0 / 3;
  double local_high = 1.5;
  std::int64_t global_tau_prime = 32;
  double global_low = 2.0 / 3;
  double global_high = 1.5;
  bool return_dropped = true;
  int codec_rate = 8;
  bool by_message = false;
  std::int64_t segment = std::int64_t(1) << 19;
  std::int64_t cutoff_bytes = 0;
  std::int64_t chunk_bytes = std::int64_t(1) << 20;
  std::int64_t ahead = 4;
};

/// Which of them `Options` has.
template <class Options>
option_names names_of() {
  option_names has;
  has.k = requires(Options how) { how.k; };
  has.tau = requires(Options how) { how.partition.tau; };
  has.rounds = requires(Options how) { how.partition.rounds; };
  has.bucket = requires(Options how) { how.schedule.bucket; };
  has.ratio = requires(Options how) { how.gather.ratio; };
  has.local_tau_prime = requires(Options how) { how.local_select.tau_prime; };
  has.local_band = requires(Options how) { how.local_select.low; };
  has.global_tau_prime = requires(Options how) { how.global_select.tau_prime; };
  has.global_band = requires(Options how) { how.global_select.low; };
  has.codec_rate = requires(Options how) { how.reduce.codec.rate; };
  has.segment = requires(Options how) { how.reduce.segment; };
  has.chunks = requires(Options how) { how.reduce.chunk_bytes; };
  return has;
}

/// The options of one algorithm.
template <class Options>
Options as(options const& from) {
  Options how;
  how.length = from.length;
  SET_IF_THERE(how.k, from.k);
  SET_IF_THERE(how.density, from.density);
  SET_IF_THERE(how.partition.tau, from.tau);
  SET_IF_THERE(how.partition.rounds, from.rounds);
  SET_IF_THERE(how.schedule.bucket, from.bucket);
  SET_IF_THERE(how.gather.ratio, from.ratio);
  SET_IF_THERE(how.gather.bound_sent, from.bound_sent);
  SET_IF_THERE(how.gather.message_entries, from.message_entries);
  SET_IF_THERE(how.local_select.tau_prime, from.local_tau_prime);
  SET_IF_THERE(how.local_select.low, from.local_low);
  SET_IF_THERE(how.local_select.high, from.local_high);
  SET_IF_THERE(how.global_select.tau_prime, from.global_tau_prime);
  SET_IF_THERE(how.global_select.low, from.global_low);
  SET_IF_THERE(how.global_select.high, from.global_high);
  SET_IF_THERE(how.return_dropped, from.return_dropped);
  SET_IF_THERE(how.reduce.codec.rate, from.codec_rate);
  SET_IF_THERE(how.reduce.level, from.by_message ? oktopk::codec_level::message : oktopk::codec_level::collective);
  SET_IF_THERE(how.reduce.segment, from.segment);
  SET_IF_THERE(how.reduce.cutoff_bytes, from.cutoff_bytes);
  SET_IF_THERE(how.reduce.chunk_bytes, from.chunk_bytes);
  SET_IF_THERE(how.reduce.ahead, from.ahead);
  return how;
}

} // namespace oktopk_fuzz

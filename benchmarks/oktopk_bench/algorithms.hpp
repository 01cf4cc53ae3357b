// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"
#include "runner.hpp"

#include <oktopk/allreduce.hpp>
#ifdef OKTOPK_BENCH_WITH_ZFP
#include <oktopk/codec/zfp.hpp>
#endif

#include <cstdint>
#include <memory>
#include <string_view>

namespace oktopk_bench {

/// Makes an algorithm for gradients of `length` entries as the options ask for; collective.
template <class Comm>
using algorithm_factory = std::unique_ptr<runner> (*)(space const& exec, Comm const& comm, std::int64_t length,
                                                      options const& asked);

template <class Comm>
struct algorithm_entry {
  std::string_view name;
  algorithm_factory<Comm> make;
};

template <class Selector>
typename Selector::options selector_options(options const& asked) {
  typename Selector::options how;
  if constexpr (requires { how.tau_prime; }) {
    how.tau_prime = asked.tau_prime.value_or(how.tau_prime);
  }
  return how;
}

template <class Partitioner>
typename Partitioner::options partitioner_options(options const& asked) {
  typename Partitioner::options how;
  if constexpr (requires { how.tau; }) {
    how.tau = asked.tau.value_or(how.tau);
  }
  return how;
}

/// The band around k that a selector keeps to, where it has one.
template <class Selector>
std::optional<band> band_of(options const& asked) {
  auto const how = selector_options<Selector>(asked);
  if constexpr (requires { band{how.low, how.high}; }) {
    return band{how.low, how.high};
  } else {
    return std::nullopt;
  }
}

/// Any ok_topk: the selectors say what its results promise.
template <class Allreduce, class LocalSelector, class GlobalSelector, class Partitioner, class Comm>
std::unique_ptr<runner> make_sparse(space const& exec, Comm const& comm, std::int64_t length, options const& asked) {
  typename Allreduce::options how;
  how.length = length;
  how.k = asked.k;
  how.density = asked.density;
  how.local_select = selector_options<LocalSelector>(asked);
  how.global_select = selector_options<GlobalSelector>(asked);
  how.partition = partitioner_options<Partitioner>(asked);
  promises promised;
  promised.local_exact = std::is_same_v<LocalSelector, oktopk::exact>;
  promised.global_exact = std::is_same_v<GlobalSelector, oktopk::exact>;
  promised.global_top = promised.local_exact;
  promised.local_band = band_of<LocalSelector>(asked);
  promised.global_band = band_of<GlobalSelector>(asked);
  return std::make_unique<runner_of<Allreduce>>(exec, comm, how, promised);
}

template <class Local, class Global, class Comm>
std::unique_ptr<runner> make_ok_topk_with(space const& exec, Comm const& comm, std::int64_t length,
                                          options const& asked) {
  using format = oktopk::coo<float, std::int32_t>;
  auto const with = [&]<class Partitioner>(std::type_identity<Partitioner>) {
    return make_sparse<oktopk::ok_topk<space, Comm, format, Local, Global, Partitioner>, Local, Global, Partitioner>(
        exec, comm, length, asked);
  };
  // Each combination takes its time to compile; the options allow no others.
  if constexpr (std::is_same_v<Local, oktopk::exact> && std::is_same_v<Global, oktopk::exact>) {
    if (asked.partition == "uniform") {
      return with(std::type_identity<oktopk::uniform>{});
    }
    if (asked.partition == "balanced") {
      return with(std::type_identity<oktopk::balanced>{});
    }
  }
  return with(std::type_identity<oktopk::evened>{});
}

template <class Comm>
std::unique_ptr<runner> make_ok_topk(space const& exec, Comm const& comm, std::int64_t length, options const& asked) {
  using oktopk::exact;
  using oktopk::reused_threshold;
  bool const exact_global = asked.global_select == "exact";
  if (asked.local_select == "exact") {
    return exact_global ? make_ok_topk_with<exact, exact>(exec, comm, length, asked)
                        : make_ok_topk_with<exact, reused_threshold>(exec, comm, length, asked);
  }
  return exact_global ? make_ok_topk_with<reused_threshold, exact>(exec, comm, length, asked)
                      : make_ok_topk_with<reused_threshold, reused_threshold>(exec, comm, length, asked);
}

template <class Comm>
std::unique_ptr<runner> make_paper_ok_topk(space const& exec, Comm const& comm, std::int64_t length,
                                           options const& asked) {
  return make_sparse<oktopk::paper_ok_topk<space, Comm>, oktopk::unguarded_threshold, oktopk::gathered_threshold,
                     oktopk::balanced>(exec, comm, length, asked);
}

/// A dense scheme; what a lossless one promises is everything.
template <class Dense, bool Lossless, class Comm>
std::unique_ptr<runner> make_plain(space const& exec, Comm const& comm, std::int64_t length, options const&) {
  typename Dense::options how;
  how.length = length;
  promises promised;
  promised.everything = Lossless;
  return std::make_unique<runner_of<Dense>>(exec, comm, how, promised);
}

/// A textbook's dense scheme with coded messages.
template <class Dense, class Codec, class Comm>
std::unique_ptr<runner> make_coded_with(space const& exec, Comm const& comm, std::int64_t length,
                                        options const& asked) {
  typename Dense::options how;
  how.length = length;
  how.reduce.level = asked.codec_level == "message" ? oktopk::codec_level::message : oktopk::codec_level::collective;
  how.reduce.ranks_may_differ = !asked.verify; // verification tells whether they do
  if constexpr (requires { how.reduce.codec.rate; }) {
    how.reduce.codec.rate = asked.rate.value_or(how.reduce.codec.rate);
  }
  promises promised;
  promised.everything = Codec::lossless;
  return std::make_unique<runner_of<Dense>>(exec, comm, how, promised);
}

/// The same over a plain wire, or with the codec that was asked for.
template <template <class, class, class, class, class> class Dense, class Comm>
std::unique_ptr<runner> make_coded(space const& exec, Comm const& comm, std::int64_t length, options const& asked) {
  if (asked.codec == "identity") {
    using codec = oktopk::identity;
    return make_coded_with<Dense<space, Comm, float, std::int32_t, oktopk::coded_wire<codec>>, codec>(exec, comm,
                                                                                                      length, asked);
  }
  if (asked.codec == "bfloat16") {
    using codec = oktopk::bfloat16;
    return make_coded_with<Dense<space, Comm, float, std::int32_t, oktopk::coded_wire<codec>>, codec>(exec, comm,
                                                                                                      length, asked);
  }
  if (asked.codec == "block_float") {
    using codec = oktopk::block_float;
    return make_coded_with<Dense<space, Comm, float, std::int32_t, oktopk::coded_wire<codec>>, codec>(exec, comm,
                                                                                                      length, asked);
  }
#ifdef OKTOPK_BENCH_WITH_ZFP
  if (asked.codec == "zfp") {
    if constexpr (oktopk::detail::is_device<space>) {
      throw oktopk::error(oktopk::fault::option_out_of_range, "--codec zfp codes in host memory, not on a device");
    } else {
      using codec = oktopk::zfp;
      return make_coded_with<Dense<space, Comm, float, std::int32_t, oktopk::coded_wire<codec>>, codec>(exec, comm,
                                                                                                        length, asked);
    }
  }
#endif
  return make_plain<Dense<space, Comm, float, std::int32_t, oktopk::plain_wire>, true>(exec, comm, length, asked);
}

/// A scheme that selects locally and has no other choice to make.
template <class Allreduce, bool ExactSelection, class Comm>
std::unique_ptr<runner> make_selecting(space const& exec, Comm const& comm, std::int64_t length, options const& asked) {
  typename Allreduce::options how;
  how.length = length;
  how.k = asked.k;
  how.density = asked.density;
  promises promised;
  promised.local_exact = ExactSelection;
  promised.all_contribute = ExactSelection;
  return std::make_unique<runner_of<Allreduce>>(exec, comm, how, promised);
}

/// Every algorithm the tool knows: a new one is one line here.
template <class Comm>
inline constexpr algorithm_entry<Comm> algorithms[] = {
    {"ok_topk", make_ok_topk<Comm>},
    {"paper_ok_topk", make_paper_ok_topk<Comm>},
    {"dense", make_plain<oktopk::dense<space, Comm>, true, Comm>},
    {"dense_rabenseifner", make_plain<oktopk::dense_rabenseifner<space, Comm>, true, Comm>},
    {"dense_bfloat16", make_plain<oktopk::dense_bfloat16<space, Comm>, false, Comm>},
    {"ring", make_plain<oktopk::dense_ring<space, Comm>, true, Comm>},
    {"ring_chunked", make_coded<oktopk::dense_ring_chunked, Comm>},
    {"ring_pipelined", make_plain<oktopk::dense_ring_pipelined<space, Comm>, true, Comm>},
    {"halving_doubling", make_plain<oktopk::dense_halving_doubling<space, Comm>, true, Comm>},
    {"recursive_doubling", make_coded<oktopk::dense_recursive_doubling, Comm>},
    {"topk_a", make_selecting<oktopk::topk_a<space, Comm>, true, Comm>},
    {"topk_dsa", make_selecting<oktopk::topk_dsa<space, Comm>, true, Comm>},
    {"gtopk", make_selecting<oktopk::gtopk<space, Comm>, true, Comm>},
    {"gaussian_k", make_selecting<oktopk::gaussian_k<space, Comm>, false, Comm>},
};

} // namespace oktopk_bench

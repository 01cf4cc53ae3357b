// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/paper_ok_topk.hpp>
#include <oktopk/catalogue/one_of.hpp>
#include <oktopk/codec/block_float.hpp>
#include <oktopk/codec/elementwise.hpp>
#include <oktopk/exchange/foreseen.hpp>
#include <oktopk/exchange/full_sums.hpp>
#include <oktopk/exchange/radix.hpp>
#include <oktopk/exchange/schedule.hpp>
#include <oktopk/format/coo.hpp>
#include <oktopk/format/coo_or_dense.hpp>
#include <oktopk/format/gap16.hpp>
#include <oktopk/format/packed.hpp>
#include <oktopk/format/values/fixed.hpp>
#include <oktopk/format/values/floats.hpp>
#include <oktopk/partition/balanced.hpp>
#include <oktopk/partition/sampled.hpp>
#include <oktopk/partition/uniform.hpp>
#include <oktopk/select/chunked.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/gaussian.hpp>
#include <oktopk/select/random_k.hpp>
#include <oktopk/select/reused_threshold.hpp>

#include <string_view>
#include <tuple>

/// The policies that a text can name: a new one is one line in the list of its kind.
namespace oktopk::catalogue {

inline constexpr std::tuple local_selectors{
    detail::alternative<exact>{"exact", "exactly k entries, the largest"},
    detail::alternative<reused_threshold>{"reused",
                                          "about k: an exact threshold every tau' iterations, reused in between"},
    detail::alternative<unguarded_threshold>{"unguarded", "the same without a band around k: the paper to the letter"},
    detail::alternative<gaussian>{"gaussian", "the threshold of a normal distribution"},
    detail::alternative<chunked>{"chunked", "the largest of every chunk of 4,096 values, k in all"},
    detail::alternative<random_k>{"random", "k entries at random places, the same on all ranks"},
};

inline constexpr std::tuple global_selectors{
    detail::alternative<exact>{"exact", "exactly k entries, the largest"},
    detail::alternative<reused_threshold>{"reused",
                                          "about k: an exact threshold every tau' iterations, reused in between"},
    detail::alternative<unguarded_threshold>{"unguarded", "the same without a band around k"},
    detail::alternative<detail::foreseen_search>{
        "foreseen", "exactly k entries, from one gather of slightly more: L messages in place of 3L"},
    detail::alternative<gathered_threshold>{"gathered", "the same from a gather of all sums: the paper to the letter"},
};

inline constexpr std::tuple partitioners{
    detail::alternative<sampled>{"sampled", "of about the same number of entries, in every call where k is large"},
    detail::alternative<balanced>{"balanced", "averages of the ranks' own boundaries: the paper's"},
    detail::alternative<uniform>{"uniform", "regions of the same width, contiguous or of several blocks"},
};

inline constexpr std::tuple schedules{
    detail::alternative<rotated>{"rotated", "straight to the owners: the paper's"},
    detail::alternative<radix>{"radix",
                               "summed on the way, in stages of few messages; radix(16) has 16 groups a stage"},
};

inline constexpr std::tuple gathers{
    detail::alternative<balanced_allgatherv>{"doubling", "by doubling, after uneven parts were balanced: the paper's"},
};

/// A sparse format for any value and index type.
template <template <gradient_value, gradient_index> class Format>
struct format_alternative {
  template <gradient_value Value, gradient_index Index>
  using type = Format<Value, Index>;
  std::string_view name;
  std::string_view about;
};

/// Values of a packed format.
inline constexpr std::tuple value_codecs{
    detail::alternative<exact_values>{"exact", "as they are, exponents packed"},
    detail::alternative<bfloat16_values>{"bfloat16", "7 bits of mantissa, exponents packed"},
    detail::alternative<fixed_values<8>>{"fixed8", "255 levels a block"},
    detail::alternative<fixed_values<4>>{"fixed4", "15 levels a block"},
    detail::alternative<fixed_values<2>>{"fixed2", "two magnitudes a block"},
    detail::alternative<sign_values>{"sign", "one magnitude a block"},
    detail::alternative<float16_values>{"float16", "10 bits of mantissa, 65504 at most, exponents packed"},
};

using any_values = detail::one_of_list<detail::one_of_values, decltype(value_codecs)>::type;

/// `packed` with values that are chosen at run time.
template <gradient_value Value, gradient_index Index>
using any_packed = packed<Value, Index, any_values>;

inline constexpr std::tuple formats{
    format_alternative<coo>{"coo", "indices and values"},
    format_alternative<coo_or_dense>{"coo_or_dense", "the same, or all values of a region where that is less"},
    format_alternative<any_packed>{"packed", "gaps of indices as a Rice code, values by a code of their own"},
    format_alternative<gap16>{"gap16", "gaps of indices in 16 bits, and values"},
};

/// The codecs of dense messages that need no other library.
inline constexpr std::tuple codecs{
    detail::alternative<identity>{"identity", "values as they are"},
    detail::alternative<bfloat16>{"bfloat16", "16 bits a value"},
    detail::alternative<block_float>{"block_float", "rate bits a value, and an exponent of 64 values"},
    detail::alternative<float16>{"float16", "16 bits a value, 65504 at most"},
};

using any_local_selector = detail::one_of_list<detail::one_of_selectors, decltype(local_selectors)>::type;
using any_partitioner = detail::one_of_list<detail::one_of_partitioners, decltype(partitioners)>::type;
using any_schedule = detail::one_of_list<detail::one_of_schedules, decltype(schedules)>::type;
using any_gather = detail::one_of_list<detail::one_of_gathers, decltype(gathers)>::type;

template <class... Choices>
using deliverers_by = detail::one_of_deliverers<any_gather, Choices...>;
using any_deliverer = detail::one_of_list<deliverers_by, decltype(global_selectors)>::type;

/// `full_sums` where the text says so.
struct any_sums : full_sums {
  struct options {
    bool fill = false;

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      full_sums::options::each_option(how, visit);
    }
  };

  explicit any_sums(options const& how) : full_sums(full_sums::options{how.fill}) {}
};

constexpr auto const& alternatives_of(any_local_selector::options const&) {
  return local_selectors;
}
constexpr auto const& alternatives_of(decltype(any_deliverer::options::global_select) const&) {
  return global_selectors;
}
constexpr auto const& alternatives_of(any_partitioner::options const&) {
  return partitioners;
}
constexpr auto const& alternatives_of(any_schedule::options const&) {
  return schedules;
}
constexpr auto const& alternatives_of(any_gather::options const&) {
  return gathers;
}

} // namespace oktopk::catalogue

// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/option_reader.hpp>
#include <oktopk/catalogue/policies.hpp>
#include <oktopk/dense/coded_wire.hpp>
#include <oktopk/dense/wire.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace oktopk::catalogue {

template <class Options>
void read_options(option_reader& in, Options& how);

/// Reads which of several policies it is, and the options of that one.
template <class List, class Chosen>
void read_choice(option_reader& in, std::string_view key, List const& list, std::string_view about, Chosen& chosen) {
  std::string const by_default(std::get<0>(list).name);
  in.choose(key, list, by_default, about, [&]<class Policy>(alternative<Policy> const&) {
    oktopk::detail::choice_of<Policy> choice;
    read_options(in, choice.options);
    chosen = choice;
  });
}

/// Reads which of several value codecs a format has.
template <class Format>
void read_values(option_reader& in, Format& format) {
  auto values = format.values();
  values.chosen = 0;
  std::int32_t position = 0;
  auto const names = oktopk::detail::names_of(value_codecs);
  in.choose("values", value_codecs, names.front(), "values of a packed format", [&]<class Codec>(Codec const& codec) {
    position = static_cast<std::int32_t>(std::find(names.begin(), names.end(), codec.name) - names.begin());
  });
  values.chosen = position;
  format = Format(values);
}

/// Offers a reader every option that a struct of options has, by its member: one line an option, whichever policies
/// have it.
template <class Options>
void read_options(option_reader& in, Options& how) {
  // clang-format off
  if constexpr (requires { how.tau; }) { in("tau", how.tau, "iterations from one partition to the next"); }
  if constexpr (requires { how.rounds; }) { in("rounds", how.rounds, "times that the regions are evened"); }
  if constexpr (requires { how.tau_prime; }) { in("tau_prime", how.tau_prime, "iterations that a threshold holds, local and global"); }
  if constexpr (requires { how.low; }) { in("low", how.low, "fewest entries that a reused threshold may select, in multiples of k"); }
  if constexpr (requires { how.high; }) { in("high", how.high, "most entries that a reused threshold may select, in multiples of k"); }
  if constexpr (requires { how.chunk; }) { in("chunk", how.chunk, "values in a chunk, 64 to 1048576"); }
  if constexpr (requires { how.per_chunk; }) { in("per_chunk", how.per_chunk, "entries of each chunk; 0 for what k asks for"); }
  if constexpr (requires { how.bucket; }) { in("bucket", how.bucket, "messages each way in flight together"); }
  if constexpr (requires { how.ratio; }) { in("ratio", how.ratio, "largest part to mean above which the gather balances"); }
  if constexpr (requires { how.bound_sent; }) { in("bound_sent", how.bound_sent, "balance also where a rank would send over the bound"); }
  if constexpr (requires { how.message_entries; }) { in("message_entries", how.message_entries, "entries whose time a message of balancing may cost"); }
  if constexpr (requires { how.return_dropped; }) { in("return_dropped", how.return_dropped, "return dropped partial sums to the residual"); }
  if constexpr (requires { how.rate; }) { in("rate", how.rate, "bits a value, 4 to 16"); }
  if constexpr (requires { how.segment; }) { in("segment", how.segment, "values that are coded and sent at once"); }
  if constexpr (requires { how.cutoff_bytes; }) { in("cutoff_bytes", how.cutoff_bytes, "bytes below which a vector is not coded"); }
  if constexpr (requires { how.ranks_may_differ; }) { in("ranks_may_differ", how.ranks_may_differ, "let an unstable codec code each message"); }
  if constexpr (requires { how.chunk_bytes; }) { in("chunk_bytes", how.chunk_bytes, "bytes of a sub-chunk"); }
  if constexpr (requires { how.ahead; }) { in("ahead", how.ahead, "receives under way at once"); }
  // clang-format on
  if constexpr (requires { requires std::same_as<decltype(how.level), codec_level>; }) {
    constexpr std::array<std::pair<std::string_view, codec_level>, 2> levels{
        {{"collective", codec_level::collective}, {"message", codec_level::message}}};
    in("codec_level", how.level, levels, "code once a collective, or once a message");
  }
  if constexpr (requires { how.format.values().chosen; }) {
    read_values(in, how.format);
  }
  if constexpr (requires { how.local_select.chosen; }) {
    read_choice(in, "local_select", local_selectors, "selection of a rank's own entries", how.local_select.chosen);
  } else if constexpr (requires { how.local_select; }) {
    read_options(in, how.local_select);
  }
  if constexpr (requires { how.global_select.chosen; }) {
    read_choice(in, "global_select", global_selectors, "selection among the sums", how.global_select.chosen);
  } else if constexpr (requires { how.global_select; }) {
    read_options(in, how.global_select);
  }
  if constexpr (requires { how.partition.chosen; }) {
    read_choice(in, "partition", partitioners, "regions of the ranks", how.partition.chosen);
  } else if constexpr (requires { how.partition; }) {
    read_options(in, how.partition);
  }
  if constexpr (requires { how.schedule; }) {
    read_options(in, how.schedule);
  }
  if constexpr (requires { how.gather; }) {
    read_options(in, how.gather);
  }
  if constexpr (requires { how.reduce; }) {
    read_options(in, how.reduce);
  }
  if constexpr (requires { how.codec; }) {
    read_options(in, how.codec);
  }
}

} // namespace oktopk::catalogue

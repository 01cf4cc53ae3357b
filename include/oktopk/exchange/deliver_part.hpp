// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/options.hpp>
#include <oktopk/exchange/deliver.hpp>

#include <algorithm>
#include <string>
#include <vector>

// Deliverers of sums that not all ranks get.
namespace oktopk {

/// Each rank keeps the sums of its own region. Sends nothing.
struct own_region {
  struct options {};

  template <wire_value>
  using state = detail::no_state;

  own_region() = default;
  explicit own_region(options) {}

  static std::string name() { return "own_region"; }
  static std::string describe() { return name(); }
  static std::string problem() { return {}; }
  static detail::delivery_promises promises() { return {}; }

  template <execution_space E, communicator Comm, sparse_format Format>
  struct step {
    step(own_region const&, Format const&) {}

    detail::delivered<Format, E> run(call_context<E, Comm>&, detail::reduced<Format, E> const& mine, regions<E> const&,
                                     detail::no_state&) {
      return {mine.sums, mine.sums, {}};
    }

    static word_bound bound_words(detail::call_size const&) { return {}; }
    static detail::call_cost expected_cost(own_region const&, Format const&, int, double, double, double) { return {}; }
  };
};

/// All sums for one rank, none for the others.
///
/// 2(P-1) words of sizes in ceil(log2 P) messages; then each rank sends the sums of its region, in one message to the root. An
/// index that several ranks have reaches the root once, where it would as often as they have it if they sent all of it there.
struct to_root {
  struct options {
    int root = 0; ///< the rank that gets the sums

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("root", how.root, "rank that gets the sums", at_least(0));
    }
  };

  template <wire_value>
  using state = detail::no_state;

  to_root() = default;
  explicit to_root(options how) : root(how.root) {}

  static std::string name() { return "to_root"; }
  std::string describe() const { return detail::describe_options(name(), options{root}); }
  std::string problem() const { return detail::fault_of_options(name(), options{root}); }
  static detail::delivery_promises promises() { return {}; }

  int root = 0;

  template <execution_space E, communicator Comm, sparse_format Format>
  class step {
  public:
    step(to_root const& how, Format const& format)
        : root_(how.root), pieces_(format), balance_(format),
          entries_("oktopk::to_root::entries", detail::width_of<Format>(format.width())) {}

    detail::delivered<Format, E> run(call_context<E, Comm>& call, detail::reduced<Format, E> const& mine,
                                     regions<E> const& owned, detail::no_state&) {
      std::span<std::int64_t const> const sizes = counts_.run(call, mine.sums.size());
      auto const where = [&](std::size_t rank) { return owned.region_of(static_cast<int>(rank)); };
      detail::unbalanced_scheme(sizes, scheme_);
      std::int64_t room = 0;
      for (detail::transfer& piece : scheme_) {
        piece.to = root_;
        room += pieces_.capacity(piece.last - piece.first, where(static_cast<std::size_t>(piece.from)));
      }
      bool const is_root = call.comm.rank() == root_;
      most_ = pieces_.capacity(mine.sums.size(), owned.region_of(call.comm.rank()));
      bytes_.reserve(call.exec, call.comm, is_root ? room : 0);
      std::int64_t const end = balance_.run(call, mine.sums, scheme_, where, bytes_);
      if (!is_root || scheme_.empty()) {
        return {entries_.entries(0), mine.sums, {}};
      }
      detail::fence(call.exec, "oktopk::to_root::encoded");
      entries_.reserve(call.exec, scheme_.back().last);
      bytes_.pull(call.exec, 0, end);
      std::int64_t offset = 0;
      for (detail::transfer const& piece : scheme_) {
        std::int64_t const count = piece.last - piece.first;
        region const from = where(static_cast<std::size_t>(piece.from));
        std::int64_t const bytes = pieces_.encoded_bytes(call.exec, count, from, bytes_, offset, end - offset);
        pieces_.decode(call.exec, bytes_, offset, bytes, count, from, entries_.indices.data() + piece.first,
                       entries_.values_at(piece.first));
        offset += detail::encoded_pieces<E, Format>::header_bytes + detail::round_up_to_8(bytes);
      }
      return {entries_.entries(scheme_.back().last), mine.sums, {}};
    }

    /// With the sums that this rank had in the last call.
    word_bound bound_words(detail::call_size const& of) const {
      return counts_.bound_words(of.ranks) + word_bound{static_cast<double>(most_) / 4, 0, 1};
    }

    static detail::call_cost expected_cost(to_root const&, Format const& format, int ranks, double length, double sums,
                                           double) {
      double const places = length / ranks;
      double const arrive = ranks - 1;
      return {.messages = detail::doubling_steps(ranks) + 1,
              .bytes = (8.0 + detail::expected_bytes(format, sums, places)) * arrive, // into the root's link
              .encoded = detail::expected_places(format, sums, places),
              .decoded = ranks * detail::expected_places(format, sums, places),
              .passes = 1.0 + ranks};
    }

  private:
    int root_;
    detail::encoded_pieces<E, Format> pieces_;
    detail::balance<E, Comm, Format> balance_;
    detail::count_gathering<Comm> counts_;
    detail::message_buffer<E> bytes_{"oktopk::to_root::bytes"};
    detail::entries_buffer<typename Format::index_type, typename Format::value_type, E, detail::width_of<Format>>
        entries_;
    std::vector<detail::transfer> scheme_;
    std::int64_t most_ = 0; // bytes that this rank has sent at most
  };
};

} // namespace oktopk

// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/catalogue/any_allreduce.hpp>
#include <oktopk/catalogue/option_reader.hpp>
#include <oktopk/catalogue/read_options.hpp>
#include <oktopk/dense/coded_wire.hpp>
#include <oktopk/dense/wire.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace oktopk {

/// The size of a selection; dense schemes take the length only, and a text may have its own density or k.
struct gradient_size {
  std::int64_t length = 0;         ///< of the accumulators
  std::optional<std::int64_t> k{}; ///< entries to select, in [0, length]; this or density
  std::optional<double> density{}; ///< k / length, in (0, 1]; k is rounded, and at least 1
};

} // namespace oktopk

/// The kinds of algorithms that `catalogue/algorithms.hpp` lists. Each `visit`s an algorithm's type, options and
/// promises as a reader has them: `sink(type_identity<Allreduce>, options, promises)`, for each alternative where it
/// makes a list.
namespace oktopk::catalogue {

/// Template arguments for an algorithm, as the argument of a function: nvcc warns of functions that have them as
/// template parameters alone.
template <class... Arguments>
struct arguments {};

template <class Allreduce>
inline constexpr bool sums_everything = false;

template <class E, class Comm, class Value, class Index, class Reduce>
inline constexpr bool sums_everything<dense<E, Comm, Value, Index, Reduce>> = Reduce::lossless;

/// Whether an algorithm starts its messages in groups that fit such a communicator, or starts none.
template <class Comm, class Allreduce>
inline constexpr bool runs_over = true;

template <class Comm, class E, class Value, class Index, class Reduce>
inline constexpr bool runs_over<Comm, dense<E, Comm, Value, Index, Reduce>> =
    !Comm::ordered_by_instance || requires { requires Reduce::starts_no_messages; };

template <class Codec>
struct wire_of {
  using type = coded_wire<Codec>;
};

template <>
struct wire_of<void> {
  using type = plain_wire;
};

template <class Selector>
selection_promise promise_of(Selector const& how) {
  if constexpr (requires { how.chosen; }) {
    return std::visit([](auto const& choice) { return oktopk::detail::promise_of(choice.options); }, how.chosen);
  } else {
    return oktopk::detail::promise_of(how);
  }
}

template <class Allreduce>
allreduce_promises promises_of(typename Allreduce::options const& how) {
  allreduce_promises promised;
  promised.everything = sums_everything<Allreduce>;
  if constexpr (requires { how.local_select; }) {
    promised.local = promise_of(how.local_select);
    promised.selects = promised.all_contribute = true;
  }
  if constexpr (requires { how.global_select; }) {
    promised.global = promise_of(how.global_select);
    promised.all_contribute = false;
  }
  if constexpr (requires { how.return_dropped; }) {
    promised.exact_sums = promised.all_contribute = how.return_dropped;
    promised.coded = coded_messages::tree;
  } else if constexpr (requires { how.schedule; }) {
    promised.coded = coded_messages::regions;
  }
  if constexpr (requires { how.format.values(); }) {
    promised.rounding = loses(how.format) ? how.format.values().name() : std::string();
  }
  return promised;
}

/// The policies that a state depends on, which its type does not tell.
template <class Options>
std::string policies_of(Options const& how) {
  std::string text;
  if constexpr (requires { how.local_select.chosen; }) {
    text += "local_select=" + oktopk::detail::names_of(local_selectors)[how.local_select.chosen.index()];
  }
  if constexpr (requires { how.global_select.chosen; }) {
    text += ", global_select=" + oktopk::detail::names_of(global_selectors)[how.global_select.chosen.index()];
  }
  return text;
}

/// An algorithm that selects; `type` names it for an execution space, a communicator and a sparse format.
template <class Type>
struct sparse_scheme {
  std::string_view name;
  std::string_view about;
  std::string_view format; ///< by default
  Type type;

  template <class E, class Comm, class Value, class Index, class Extras, class Sink>
  void visit(option_reader& in, gradient_size const& size, Sink const& sink) const {
    in.choose("format", formats, format, "entries on the wire", [&]<class Format>(Format const&) {
      using chosen = typename Format::template type<Value, Index>;
      using allreduce = typename decltype(std::declval<Type const&>()(arguments<E, Comm, chosen>()))::type;
      typename allreduce::options how{};
      how.length = size.length;
      read_options(in, how);
      bool const has_density = in("density", how.density, "share of the entries to select, in place of the program's");
      bool const has_k = in("k", how.k, "entries to select, in place of the program's number or share");
      if (!has_density && !has_k) {
        how.k = size.k;
        how.density = size.density;
      }
      sink(std::type_identity<allreduce>(), how, promises_of<allreduce>(how));
    });
  }
};

template <class Type>
sparse_scheme(std::string_view, std::string_view, std::string_view, Type) -> sparse_scheme<Type>;

/// An algorithm that sums whole gradients; `type` names it for an execution space, a communicator, value and index.
template <class Type>
struct dense_scheme {
  std::string_view name;
  std::string_view about;
  Type type;

  template <class E, class Comm, class Value, class Index, class Extras, class Sink>
  void visit(option_reader& in, gradient_size const& size, Sink const& sink) const {
    using allreduce = typename decltype(std::declval<Type const&>()(arguments<E, Comm, Value, Index>()))::type;
    typename allreduce::options how{};
    how.length = size.length;
    read_options(in, how);
    sink(std::type_identity<allreduce>(), how, promises_of<allreduce>(how));
  }
};

template <class Type>
dense_scheme(std::string_view, std::string_view, Type) -> dense_scheme<Type>;

/// A dense algorithm that codes its messages, or not; `type` names it for a wire as well.
template <class Type>
struct coded_scheme {
  std::string_view name;
  std::string_view about;
  Type type;

  template <class E, class Comm, class Value, class Index, class Extras, class Sink>
  void visit(option_reader& in, gradient_size const& size, Sink const& sink) const {
    constexpr auto known = std::tuple_cat(std::tuple{alternative<void>{"none", "values as they are"}}, codecs,
                                          Extras::template codecs<E>());
    in.choose("codec", known, "none", "code of the messages", [&]<class Codec>(alternative<Codec> const&) {
      using wire = typename wire_of<Codec>::type;
      auto const with_wire = [this]<class Space, class Ranks, class V, class I>(arguments<Space, Ranks, V, I>) {
        return type(arguments<Space, Ranks, V, I, wire>());
      };
      dense_scheme{name, about, with_wire}.template visit<E, Comm, Value, Index, Extras>(in, size, sink);
    });
  }
};

template <class Type>
coded_scheme(std::string_view, std::string_view, Type) -> coded_scheme<Type>;

} // namespace oktopk::catalogue

// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/paper_ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>
#include <oktopk/catalogue/any_allreduce.hpp>
#include <oktopk/catalogue/automatic.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/catalogue/option_reader.hpp>
#include <oktopk/catalogue/policies.hpp>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

/// The algorithms that a text can name. Each kind of scheme has `visit`: it fills the options of an algorithm from a
/// reader and calls `sink(type_identity<Allreduce>, options)`; if the reader makes a list, once for each alternative.
namespace oktopk::catalogue {

/// True if messages of an algorithm wait for each other, so that they must not be ordered by the instance.
template <class Allreduce>
inline constexpr bool needs_free_order = false;

template <class Comm, class E, class Value, class Index, class Reduce>
inline constexpr bool needs_free_order<dense<E, Comm, Value, Index, Reduce>> = !Reduce::starts_no_messages;

/// Offers a reader the options of an algorithm and of its policies.
struct policy_reader {
  detail::option_reader& in;

  template <class T, class... About>
  void operator()(std::string_view key, T& value, std::string_view about, About const&... more) {
    if constexpr (requires { alternatives_of(value); }) {
      auto const& list = alternatives_of(value);
      in.choose(key, list, std::get<0>(list).name, about, [&]<class Policy>(detail::alternative<Policy> const&) {
        detail::choice_of<Policy> choice;
        in.within(key, [&] { read(choice.options); });
        value.chosen = choice;
      });
    } else if constexpr (requires { value.values().chosen; }) {
      in.within(key, [&] { read_values(value); });
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      in(key, value, about, more...);
    } else {
      read(value);
    }
  }

  template <class T, std::size_t Count>
  void operator()(std::string_view key, T& value, option_names<T, Count> const& names, std::string_view about) {
    in(key, value, names, about);
  }

  template <class Options>
  void read(Options& how) {
    if constexpr (requires { Options::each_option(how, *this); }) {
      Options::each_option(how, *this);
    }
  }

private:
  template <class Format>
  void read_values(Format& format) {
    auto values = format.values();
    auto const names = detail::names_of(value_codecs);
    in.choose("values", value_codecs, names.front(), "values of a packed format", [&](auto const& each) {
      values.chosen = static_cast<std::int32_t>(std::ranges::find(names, each.name) - names.begin());
    });
    format = Format(values);
  }
};

/// The policies that a state depends on and that the type of the state does not name, as `any_state` holds them.
template <class Options>
std::string policies_of(Options const& how) {
  std::string text;
  if constexpr (requires { how.local_select.chosen; }) {
    text += "local_select=" + detail::names_of(local_selectors)[how.local_select.chosen.index()];
  }
  if constexpr (requires { how.deliver.global_select.chosen; }) {
    text += ", global_select=" + detail::names_of(global_selectors)[how.deliver.global_select.chosen.index()];
  }
  return text;
}

/// Sink of a visit: keeps a function that makes the algorithm, for `make_allreduce`.
template <execution_space E, gradient_value Value, gradient_index Index>
struct making {
  using any = any_allreduce<E, any_communicator, Value, Index>;

  std::span<added_codec<E, Value, Index> const> added{}; ///< codecs of the program, beside the built-in ones
  std::function<any(E const&, any_communicator const&, std::string_view text)> make{};
  bool in_free_order = false; ///< `needs_free_order`

  template <class Allreduce>
  void operator()(std::type_identity<Allreduce>, typename Allreduce::options const& how) {
    in_free_order = needs_free_order<Allreduce>;
    make = [how](E const& exec, any_communicator const& comm, std::string_view text) {
      return any(std::in_place_type<Allreduce>, exec, comm, how,
                 detail::any_description{std::string(text), policies_of(how)});
    };
  }
};

/// Sink of a visit that lists options alone.
template <execution_space E, gradient_value Value, gradient_index Index>
struct listing {
  std::span<added_codec<E, Value, Index> const> added{};

  template <class... Any>
  void operator()(Any const&...) const {}
};

/// Returns true if the request has a density. `automatic` takes `fit(30ms, least=0.001, most=0.05)` as well.
template <class Options>
bool read_density(detail::option_reader& in, Options& how) {
  constexpr std::string_view about = "share of the entries to select, overrides the program's";
  if constexpr (requires { how.fit; }) {
    std::string text;
    if (in("density", text, about) && text.starts_with("fit(")) {
      std::size_t const comma = std::min(text.find(','), text.size() - 1);
      std::string const time = detail::trimmed(std::string_view(text).substr(4, comma - 4));
      std::string const others = text[comma] == ',' ? ", " + text.substr(comma + 1) : ")";
      if (!time.ends_with("ms") || time.find_first_of("=()") != time.npos || !detail::is_closed_at_end(text)) {
        throw error(fault::option_out_of_range,
                    "density = \"" + text + "\" is not fit(30ms) or fit(30ms, least=0.001, most=0.05)");
      }
      detail::option_reader of_fit(
          detail::allreduce_request::parse("fit(ms=" + time.substr(0, time.size() - 2) + others, "a density"));
      auto const read = [](detail::option_reader& from, detail::density_fit& fit) {
        from("ms", fit.milliseconds, "milliseconds of a call");
        from("least", fit.least, "least density");
        from("most", fit.most, "largest density");
      };
      read(of_fit, how.fit.emplace());
      of_fit.finish([&](detail::option_reader& all) { read(all, *how.fit); });
      return true;
    }
  }
  return in("density", how.density, about);
}

/// Visits an algorithm. If it selects, a k or a density in the text replaces that of the program.
template <class Allreduce, class Sink>
void visit_options(detail::option_reader& in, gradient_size const& size, Sink&& sink) {
  typename Allreduce::options how{};
  how.length = size.length;
  policy_reader{in}.read(how);
  if constexpr (requires { how.k; }) {
    bool const has_density = read_density(in, how);
    bool const has_k = in("k", how.k, "entries to select, overrides the program's number or share");
    if (!has_density && !has_k) {
      how.k = size.k;
      how.density = size.density;
    }
  }
  sink(std::type_identity<Allreduce>(), how);
}

/// The algorithms of a family are compiled together: one file of `oktopk::catalogue` each.
enum class family : std::uint8_t { ok_topk, top_k, dense, coded, automatic };

/// An algorithm that selects: `Type<E, Comm, Policies<Format>>`. An algorithm without the option `format` sends no
/// indices; it takes only its types from the format.
template <template <class, class, class> class Type, template <sparse_format> class Policies>
struct sparse_scheme {
  std::string_view name;
  std::string_view about;
  family of = family::top_k;
  std::string_view format = "coo"; ///< by default

  static constexpr bool is_sparse = true;
  static constexpr bool is_coded = false;

  template <class E, class Value, class Index, class Sink>
  void visit(detail::option_reader& in, gradient_size const& size, Sink&& sink) const {
    using with_coo = Type<E, any_communicator, Policies<coo<Value, Index>>>;
    if constexpr (requires(typename with_coo::options how) { how.format; }) {
      in.choose("format", formats, format, "entries on the wire", [&]<class Format>(Format const&) {
        visit_options<Type<E, any_communicator, Policies<typename Format::template type<Value, Index>>>>(in, size,
                                                                                                         sink);
      });
    } else {
      visit_options<with_coo>(in, size, sink);
    }
  }
};

/// An algorithm that sums whole gradients by one of `dense/`: `dense<E, Comm, Value, Index, Reduce<E, Comm, Value>>`.
template <template <execution_space, communicator, gradient_value> class Reduce>
struct dense_scheme {
  std::string_view name;
  std::string_view about;
  family of = family::dense;

  static constexpr bool is_sparse = false;
  static constexpr bool is_coded = false;

  template <class E, class Value, class Index, class Sink>
  void visit(detail::option_reader& in, gradient_size const& size, Sink&& sink) const {
    visit_options<dense<E, any_communicator, Value, Index, Reduce<E, any_communicator, Value>>>(in, size, sink);
  }
};

/// A dense algorithm whose messages may be coded: `Type<E, Comm, Value, Index, Wire>`.
template <template <execution_space, communicator, gradient_value, gradient_index, class> class Type>
struct coded_scheme {
  std::string_view name;
  std::string_view about;
  family of = family::coded;

  static constexpr bool is_sparse = false;
  static constexpr bool is_coded = true;

  template <class E, class Value, class Index, class Sink>
  void visit(detail::option_reader& in, gradient_size const& size, Sink&& sink) const {
    std::vector<detail::option_reader::choice> list{
        {"none", [&] { visit_over<detail::plain_wire, E, Value, Index>(in, size, sink); }}};
    auto const add = [&]<class Codec>(detail::alternative<Codec> const& each) {
      list.push_back({std::string(each.name), [&] { visit_over<coded_wire<Codec>, E, Value, Index>(in, size, sink); }});
    };
    std::apply([&](auto const&... each) { (add(each), ...); }, codecs);
    if constexpr (requires { sink.added; }) {
      for (auto const& each : sink.added) {
        list.push_back({each.name, [&] {
                          making<E, Value, Index> made;
                          each.visit(name, in, size, made);
                          if constexpr (requires { sink.make; }) {
                            sink = made;
                          }
                        }});
      }
    }
    in.choose("codec", list, "none", "code of the messages");
  }

  template <class Wire, class E, class Value, class Index, class Sink>
  void visit_over(detail::option_reader& in, gradient_size const& size, Sink&& sink) const {
    in.within("codec", [&] { visit_options<Type<E, any_communicator, Value, Index, Wire>>(in, size, sink); });
  }
};

/// `ok_topk` with policies that are chosen at run time.
template <sparse_format Format>
struct any_policies : with_format<Format> {
  using local_selector = any_local_selector;
  using partitioner = any_partitioner;
  using schedule = any_schedule;
  using deliverer = any_deliverer;
  using sums = any_sums;
};

template <execution_space E, communicator Comm, sparse_format Format>
using any_ok_topk = ok_topk<E, Comm, any_policies<Format>>;

template <sparse_format Format>
using default_with = with_format<Format>;

template <sparse_format Format>
using paper_with = with_format<Format, paper_policies>;

template <sparse_format Format>
using format_alone = Format;

template <class E, class Comm, class Format>
using automatic_of = automatic<E, Comm, typename Format::value_type, typename Format::index_type>;

template <execution_space E, communicator Comm, gradient_value Value>
using rabenseifner_of_bfloat16 = rabenseifner<E, Comm, Value, coded_wire<bfloat16, 0>>;

/// Every algorithm that a text can name: a new one is one entry here.
inline constexpr std::tuple algorithms{
    sparse_scheme<ok_topk, any_policies>{"ok_topk", "near-optimal sparse allreduce, every step a policy",
                                         family::ok_topk},
    sparse_scheme<paper_ok_topk, paper_with>{"paper_ok_topk", "the same as published", family::ok_topk},
    sparse_scheme<topk_a, default_with>{"topk_a", "allgather of the selections"},
    sparse_scheme<topk_dsa, default_with>{"topk_dsa",
                                          "reduce-scatter and allgather of the selections, dense where that is less",
                                          family::top_k, "coo_or_dense"},
    sparse_scheme<gtopk, default_with>{"gtopk", "a tree that keeps the k largest of its sums"},
    sparse_scheme<gaussian_k, format_alone>{"gaussian_k",
                                            "allgather of what a threshold of a normal distribution selects"},
    dense_scheme<native_allreduce>{"dense", "the communicator's own allreduce"},
    coded_scheme<dense_rabenseifner>{"dense_rabenseifner", "reduce-scatter by halving and allgather by doubling"},
    dense_scheme<rabenseifner_of_bfloat16>{"dense_bfloat16", "the same with 16 bits a value, whatever the length"},
    dense_scheme<ring>{"ring", "a ring of whole blocks"},
    coded_scheme<dense_ring_chunked>{"ring_chunked", "a ring of blocks in two pieces each"},
    dense_scheme<ring_pipelined>{"ring_pipelined", "a ring of blocks in many pieces"},
    dense_scheme<halving_doubling>{"halving_doubling", "halving and doubling, ranks in binary blocks"},
    coded_scheme<dense_recursive_doubling>{"recursive_doubling", "whole vectors between pairs"},
    sparse_scheme<automatic_of, format_alone>{
        "automatic", "the scheme that takes least time here: predicted, tried, and looked at again", family::automatic},
};

inline error no_algorithm(std::string_view name, std::vector<std::string> const& there_are) {
  return {fault::option_out_of_range,
          "there is no algorithm \"" + std::string(name) + "\"; there are " + detail::joined(there_are)};
}

/// Calls `visit(scheme)` for the algorithm of that name; an `error` that lists all of them if there is none.
template <class Visit>
void with_algorithm(std::string_view name, Visit const& visit) {
  bool const found =
      std::apply([&](auto const&... each) { return ((each.name == name && (visit(each), true)) || ...); }, algorithms);
  if (!found) {
    throw no_algorithm(name, detail::names_of(algorithms));
  }
}

/// An `error` that lists the algorithms of these families if there is none of that name among them.
template <family... Families>
void expect_algorithm(std::string_view name) {
  std::vector<std::string> names;
  auto const add = [&](auto const& each) {
    if (((each.of == Families) || ...)) {
      names.emplace_back(each.name);
    }
  };
  std::apply([&](auto const&... each) { (add(each), ...); }, algorithms);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw no_algorithm(name, names);
  }
}

/// Visits a scheme with the options that the reader has, and refuses those that it does not know.
template <class E, class Value, class Index, class Scheme, class Sink>
void visit_scheme(Scheme const& scheme, detail::option_reader& in, gradient_size const& size, Sink&& sink) {
  scheme.template visit<E, Value, Index>(in, size, sink);
  in.finish([&](detail::option_reader& all) {
    listing<E, Value, Index> names;
    if constexpr (requires { sink.added; }) {
      names.added = sink.added;
    }
    scheme.template visit<E, Value, Index>(all, size, names);
  });
}

/// Visits the algorithm and options that a request asks for. Throws if a name, a key or a value is unknown.
template <class E, class Value, class Index, class Sink>
void visit_request(detail::allreduce_request request, gradient_size const& size, Sink&& sink) {
  detail::option_reader in(std::move(request));
  with_algorithm(in.name(), [&](auto const& scheme) { visit_scheme<E, Value, Index>(scheme, in, size, sink); });
}

/// Keeps what makes the algorithm that the reader names, if it is of the family. No inline function: a file that
/// declares `extern template` compiles no algorithm of the family.
template <family Family, class E, class Value, class Index>
void visit_family(detail::option_reader& in, gradient_size const& size, making<E, Value, Index>& sink) {
  auto const visit_if_named = [&]<std::size_t Which>(std::integral_constant<std::size_t, Which>) {
    if constexpr (std::get<Which>(algorithms).of == Family) {
      if (std::get<Which>(algorithms).name == in.name()) {
        visit_scheme<E, Value, Index>(std::get<Which>(algorithms), in, size, sink);
      }
    }
  };
  [&]<std::size_t... Each>(std::index_sequence<Each...>) {
    (visit_if_named(std::integral_constant<std::size_t, Each>()), ...);
  }(std::make_index_sequence<std::tuple_size_v<decltype(algorithms)>>());
}

} // namespace oktopk::catalogue

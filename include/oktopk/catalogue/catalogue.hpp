// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/algorithms.hpp>
#include <oktopk/catalogue/any_allreduce.hpp>
#include <oktopk/catalogue/option_reader.hpp>
#include <oktopk/catalogue/request.hpp>
#include <oktopk/comm/self.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace oktopk {

/// Entries that a program adds to the catalogue: codecs that need another library. See `catalogue/with_zfp.hpp`.
struct no_extras {
  template <execution_space>
  static constexpr std::tuple<> codecs() {
    return {};
  }
};

/// One algorithm of the catalogue, and all options of all its policies.
struct listed_allreduce {
  std::string name;
  std::string about;
  std::vector<listed_option> options;
};

namespace detail {

/// Calls `visit(scheme)` for the algorithm of that name; an `error` that lists all of them where there is none.
template <class Visit>
void with_algorithm(std::string const& name, Visit const& visit) {
  bool found = false;
  auto const visit_if_named = [&](auto const& scheme) {
    if (scheme.name == name) {
      found = true;
      visit(scheme);
    }
  };
  std::apply([&](auto const&... each) { (visit_if_named(each), ...); }, catalogue::algorithms);
  if (!found) {
    throw error(fault::option_out_of_range,
                "there is no algorithm \"" + name + "\"; there are " + joined(names_of(catalogue::algorithms)));
  }
}

} // namespace detail

/// Makes the gradient allreduce that a text names: `ok_topk`, `ok_topk(local_select=reused, tau=32)`,
/// `ring_chunked(codec=block_float, rate=8)`, `topk_a(density=0.01)`. See `list_allreduces` for names and options. A
/// `density` or `k` of the text replaces those of `size`.
///
/// Collective; the text and the size are the same on all ranks. Throws on every rank: `option_out_of_range` where the
/// text has another form or a name, key or value that is unknown, with a list of the right ones; `ranks_disagree` where
/// the texts differ; what the algorithm's constructor throws. Compiles every algorithm of the catalogue, so a program
/// calls it in one file.
template <gradient_value Value = float, gradient_index Index = std::int32_t, class Extras = no_extras,
          execution_space E, communicator Comm>
any_allreduce<E, Comm, Value, Index> make_allreduce(E const& exec, Comm comm, std::string_view text,
                                                    gradient_size const& size, Extras = {}) {
  using any = any_allreduce<E, Comm, Value, Index>;
  std::function<any()> make;
  agreement terms("make_allreduce");
  terms.fact("algorithm", text);
  try {
    option_reader in(allreduce_request::parse(text));
    detail::with_algorithm(in.name(), [&](auto const& scheme) {
      auto const keep = [&]<class Allreduce>(std::type_identity<Allreduce>, typename Allreduce::options const& how,
                                             allreduce_promises const& promised) {
        if constexpr (catalogue::runs_over<Comm, Allreduce>) {
          make = [&exec, &comm, how, what = any_description{std::string(text), catalogue::policies_of(how), promised}] {
            return any(std::in_place_type<Allreduce>, exec, comm, how, what);
          };
        }
      };
      auto const offer_to = [&](option_reader& reader) {
        scheme.template visit<E, Comm, Value, Index, Extras>(reader, size, keep);
      };
      offer_to(in);
      in.finish(offer_to);
    });
    if (!make) {
      throw error(fault::option_out_of_range,
                  in.name() + " does not run over this communicator, which orders messages by the instance: its "
                              "messages must not wait for each other; dense does, and all sparse algorithms");
    }
  } catch (error const& found) {
    terms.note(found.code(), found.sentence());
  }
  terms.check_on(comm);
  return make();
}

/// All algorithms that `make_allreduce` knows, with the defaults of their options. Compiles no algorithm.
template <class Extras = no_extras>
std::vector<listed_allreduce> list_allreduces(Extras = {}) {
  std::vector<listed_allreduce> list;
  auto const add = [&](auto const& scheme) {
    option_reader in;
    scheme.template visit<Kokkos::DefaultHostExecutionSpace, self_communicator, float, std::int32_t, Extras>(
        in, gradient_size{}, [](auto const&...) {});
    listed_allreduce found; // nvcc breaks an initialiser in braces here
    found.name = scheme.name;
    found.about = scheme.about;
    found.options = in.known();
    list.push_back(std::move(found));
  };
  std::apply([&](auto const&... each) { (add(each), ...); }, catalogue::algorithms);
  return list;
}

/// The list as a text for people: one line an algorithm and one an option.
template <class Extras = no_extras>
std::string catalogue_text(Extras extras = {}) {
  std::string text;
  for (listed_allreduce const& each : list_allreduces(extras)) {
    text += each.name + ": " + each.about + "\n";
    for (listed_option const& option : each.options) {
      std::string const choices = detail::joined(option.goes_with, " or ");
      text += "  " + option.key + "=" + option.value + "  " + option.about +
              (choices.empty() ? "" : "; goes with " + choices) + "\n";
    }
  }
  return text;
}

} // namespace oktopk

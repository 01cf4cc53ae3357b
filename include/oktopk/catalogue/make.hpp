// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The definitions of what `catalogue/catalogue.hpp` declares. A file that includes this compiles every algorithm of
/// the catalogue for the types that it names, unless they are compiled elsewhere: more than a minute for each.

#include <oktopk/catalogue/forecast.hpp>

#include <tuple>
#include <utility>

namespace oktopk {

namespace catalogue {

/// `make_allreduce` of the algorithms of some families alone, for a library that has compiled no others.
template <family... Families, execution_space E, gradient_value Value, gradient_index Index>
any_allreduce<E, any_communicator, Value, Index> make_of(E const& exec, any_communicator comm, std::string_view text,
                                                         gradient_size const& size,
                                                         std::span<added_codec<E, Value, Index> const> added) {
  making<E, Value, Index> sink{.added = added};
  agreement terms("make_allreduce");
  terms.fact("algorithm", text);
  try {
    detail::option_reader in(detail::allreduce_request::parse(text));
    expect_algorithm<Families...>(in.name());
    (visit_family<Families>(in, size, sink), ...);
    if (sink.in_free_order && comm.ordered_by_instance()) {
      throw error(fault::option_out_of_range,
                  in.name() + " does not run over this communicator, which orders messages by the instance: its "
                              "messages must not wait for each other; dense does, and all sparse algorithms");
    }
  } catch (error const& found) {
    terms.note(found.code(), found.sentence());
  }
  terms.check_on(comm);
  return sink.make(exec, comm, text);
}

/// `list_allreduces` of some families.
template <family... Families>
std::vector<detail::listed_allreduce> list_of(std::span<added_codec<> const> added) {
  std::vector<detail::listed_allreduce> list;
  auto const add = [&](auto const& scheme) {
    if (((scheme.of != Families) && ...)) {
      return;
    }
    detail::option_reader in;
    using names = listing<Kokkos::DefaultHostExecutionSpace, float, std::int32_t>;
    scheme.template visit<Kokkos::DefaultHostExecutionSpace, float, std::int32_t>(in, gradient_size{}, names{added});
    detail::listed_allreduce found; // nvcc breaks an initialiser in braces here
    found.name = scheme.name;
    found.about = scheme.about;
    found.options = in.known();
    list.push_back(std::move(found));
  };
  std::apply([&](auto const&... each) { (add(each), ...); }, algorithms);
  return list;
}

} // namespace catalogue

template <gradient_value Value, gradient_index Index, execution_space E, class>
any_allreduce<E, any_communicator, Value, Index>
make_allreduce(E const& exec, any_communicator comm, std::string_view text, gradient_size const& size,
               std::type_identity_t<std::span<catalogue::added_codec<E, Value, Index> const>> added) {
  using catalogue::family;
  return catalogue::make_of<family::ok_topk, family::top_k, family::dense, family::coded, family::automatic>(
      exec, std::move(comm), text, size, added);
}

template <class>
std::vector<detail::listed_allreduce> list_allreduces(std::span<catalogue::added_codec<> const> added) {
  using catalogue::family;
  return catalogue::list_of<family::ok_topk, family::top_k, family::dense, family::coded, family::automatic>(added);
}

template <class>
std::string catalogue_text(std::span<catalogue::added_codec<> const> added) {
  std::string text;
  for (detail::listed_allreduce const& each : list_allreduces(added)) {
    text += each.name + ": " + each.about + "\n";
    for (detail::listed_option const& option : each.options) {
      std::string const choices = detail::joined(option.goes_with, " or ");
      text += "  " + option.key + "=" + option.value + "  " + option.about +
              (choices.empty() ? "" : "; goes with " + choices) + "\n";
    }
  }
  return text;
}

} // namespace oktopk

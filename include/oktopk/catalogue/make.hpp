// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/algorithms.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/self.hpp>

#include <tuple>
#include <utility>

namespace oktopk {

template <gradient_value Value, gradient_index Index, execution_space E, communicator Comm>
any_allreduce<E, Comm, Value, Index> make_allreduce(E const& exec, Comm comm, std::string_view text,
                                                    gradient_size const& size) {
  catalogue::making<E, Comm, Value, Index> sink;
  agreement terms("make_allreduce");
  terms.fact("algorithm", text);
  try {
    detail::option_reader in(detail::allreduce_request::parse(text));
    catalogue::with_algorithm(in.name(), [](auto const&) {}); // that there is one
    catalogue::visit_part<0>(in, size, sink);
    catalogue::visit_part<1>(in, size, sink);
    if (!sink.make) {
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

template <class>
std::vector<detail::listed_allreduce> list_allreduces() {
  std::vector<detail::listed_allreduce> list;
  auto const add = [&](auto const& scheme) {
    detail::option_reader in;
    scheme.template visit<Kokkos::DefaultHostExecutionSpace, self_communicator, float, std::int32_t>(
        in, gradient_size{}, [](auto const&...) {});
    detail::listed_allreduce found; // nvcc breaks an initialiser in braces here
    found.name = scheme.name;
    found.about = scheme.about;
    found.options = in.known();
    list.push_back(std::move(found));
  };
  std::apply([&](auto const&... each) { (add(each), ...); }, catalogue::algorithms);
  return list;
}

template <class>
std::string catalogue_text() {
  std::string text;
  for (detail::listed_allreduce const& each : list_allreduces()) {
    text += each.name + ": " + each.about + "\n";
    for (detail::listed_option const& option : each.options) {
      std::string const choices = detail::joined(option.goes_with, " or ");
      text += "  " + option.key + "=" + option.value + "  " + option.about +
              (choices.empty() ? "" : "; goes with " + choices) + "\n";
    }
  }
  return text;
}

template <gradient_value Value, gradient_index Index, execution_space E, communicator Comm>
any_allreduce<E, Comm, Value, Index> detail::make_scheme(E const& exec, Comm const& comm, std::string const& text,
                                                         gradient_size const& size) {
  return make_allreduce<Value, Index>(exec, comm, text, size);
}

} // namespace oktopk

// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/any_allreduce.hpp>
#include <oktopk/comm/any_communicator.hpp>

namespace oktopk {

namespace detail {

class option_reader;

/// One algorithm of the catalogue, and all options of all its policies.
struct listed_allreduce {
  std::string name;
  std::string about;
  std::vector<detail::listed_option> options;
};

} // namespace detail

namespace catalogue {

template <execution_space E, gradient_value Value, gradient_index Index>
struct making;

/// A codec of dense messages that a program adds to the built-in ones: see `catalogue/with_zfp.hpp`.
template <execution_space E = Kokkos::DefaultHostExecutionSpace, gradient_value Value = float,
          gradient_index Index = std::int32_t>
struct added_codec {
  std::string name;
  void (*visit)(std::string_view scheme, detail::option_reader& in, gradient_size const& size,
                making<E, Value, Index>& sink);
};

} // namespace catalogue

/// Makes the gradient allreduce that a text names, over any communicator: `ok_topk`,
/// `ok_topk(local=reused(tau_prime=16), partition=balanced)`, `ring_chunked(codec=block_float(rate=8))`, `topk_a(density=0.01)`. See `list_allreduces` for
/// names and options. A `density` or `k` of the text replaces those of `size`. `added` are codecs of the program.
///
/// Collective; the text and the size are the same on all ranks. Throws on every rank: `option_out_of_range` if the text
/// has another form, or if a name, a key or a value is unknown, with a list of the right ones; `ranks_disagree` if the
/// texts differ; the errors of the algorithm's constructor.
///
/// Declared here, compiled once: the library `oktopk::catalogue` has it for `float` and 32-bit indices on the default
/// execution spaces of device and host. A program without that library includes `catalogue/impl.hpp` in one of its
/// files; a file that names other types includes `catalogue/make.hpp`.
template <gradient_value Value = float, gradient_index Index = std::int32_t, execution_space E,
          class = detail::compiled_for>
any_allreduce<E, any_communicator, Value, Index>
make_allreduce(E const& exec, any_communicator comm, std::string_view text, gradient_size const& size,
               std::type_identity_t<std::span<catalogue::added_codec<E, Value, Index> const>> added = {});

/// All algorithms that `make_allreduce` knows, with the defaults of their options. Compiles no algorithm.
template <class = detail::compiled_for>
std::vector<detail::listed_allreduce> list_allreduces(std::span<catalogue::added_codec<> const> added = {});

/// The list as a text for people: one line for each algorithm and for each option.
template <class = detail::compiled_for>
std::string catalogue_text(std::span<catalogue::added_codec<> const> added = {});

} // namespace oktopk

// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/catalogue/any_allreduce.hpp>

namespace oktopk {

namespace detail {

/// One algorithm of the catalogue, and all options of all its policies.
struct listed_allreduce {
  std::string name;
  std::string about;
  std::vector<detail::listed_option> options;
};

} // namespace detail

/// Makes the gradient allreduce that a text names: `ok_topk`, `ok_topk(local=reused(tau_prime=16),
/// partition=balanced)`, `ring_chunked(codec=block_float(rate=8))`, `topk_a(density=0.01)`. See `list_allreduces` for
/// names and options. A `density` or `k` of the text replaces those of `size`.
///
/// Collective; the text and the size are the same on all ranks. Throws on every rank: `option_out_of_range` if the text
/// has another form, or if a name, a key or a value is unknown, with a list of the right ones; `ranks_disagree` if the
/// texts differ; the errors of the algorithm's constructor.
///
/// Compiles every algorithm of the catalogue, so a program calls it in one file; or it links the target
/// `oktopk::catalogue`, which has it for `float` and 32-bit indices on the default execution spaces of device and host,
/// over `in_process_communicator`, `self_communicator`, `mpi_communicator` and `counted<mpi_communicator>`. For other
/// types, and over a process group of PyTorch, such a program includes `catalogue/make.hpp` as well.
template <gradient_value Value = float, gradient_index Index = std::int32_t, execution_space E, communicator Comm>
any_allreduce<E, Comm, Value, Index> make_allreduce(E const& exec, Comm comm, std::string_view text,
                                                    gradient_size const& size);

/// All algorithms that `make_allreduce` knows, with the defaults of their options. Compiles no algorithm.
template <class = void>
std::vector<detail::listed_allreduce> list_allreduces();

/// The list as a text for people: one line for each algorithm and for each option.
template <class = void>
std::string catalogue_text();

} // namespace oktopk

#ifndef OKTOPK_CATALOGUE_COMPILED
#include <oktopk/catalogue/make.hpp>
#endif

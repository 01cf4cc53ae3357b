// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/codec/block_float.hpp>
#include <oktopk/codec/elementwise.hpp>
#include <oktopk/dense/coded_wire.hpp>
#include <oktopk/dense/halving_doubling.hpp>
#include <oktopk/dense/rabenseifner.hpp>
#include <oktopk/dense/recursive_doubling.hpp>
#include <oktopk/dense/ring.hpp>

// The dense allreduces of the textbooks as algorithms for gradients: the sum of the accumulators, exact over a plain
// wire. See the headers under dense/ for steps and words. Over a coded wire, `coded_wire<Codec>`, the values that a
// lossy codec rounds off return to the residual.
namespace oktopk {

namespace detail {

template <class E, class Comm, class Value>
inline constexpr std::string_view scheme_name<rabenseifner<E, Comm, Value, plain_wire>> = "dense_rabenseifner";

template <class E, class Comm, class Value, std::int64_t Cutoff>
inline constexpr std::string_view scheme_name<rabenseifner<E, Comm, Value, coded_wire<bfloat16, Cutoff>>> =
    "dense_bfloat16";

} // namespace detail

template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
using dense_ring = dense<E, Comm, Value, Index, ring<E, Comm, Value>>;

template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t,
          class Wire = detail::plain_wire>
using dense_ring_chunked = dense<E, Comm, Value, Index, ring_chunked<E, Comm, Value, Wire>>;

template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
using dense_ring_pipelined = dense<E, Comm, Value, Index, ring_pipelined<E, Comm, Value>>;

template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
using dense_halving_doubling = dense<E, Comm, Value, Index, halving_doubling<E, Comm, Value>>;

template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t,
          class Wire = detail::plain_wire>
using dense_recursive_doubling = dense<E, Comm, Value, Index, recursive_doubling<E, Comm, Value, Wire>>;

/// Dense allreduce by Rabenseifner's algorithm (Chan et al. 2007; Table 1 of the paper): 2n(P-1)/P words and 2 log2 P
/// messages where P is a power of two; see `rabenseifner` for other P.
template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t,
          class Wire = detail::plain_wire>
using dense_rabenseifner = dense<E, Comm, Value, Index, rabenseifner<E, Comm, Value, Wire>>;

/// The same with 16 bits for each value on the wire at every length, so half the words: the dense baseline of
/// mixed-precision training. Sums are formed in full precision and rounded when they are sent; the difference returns
/// to the residual.
template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
using dense_bfloat16 = dense_rabenseifner<E, Comm, Value, Index, coded_wire<bfloat16, 0>>;

} // namespace oktopk

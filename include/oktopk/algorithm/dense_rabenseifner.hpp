// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/codec/bfloat16.hpp>
#include <oktopk/dense/rabenseifner.hpp>

#include <cstdint>

namespace oktopk {

/// Dense allreduce by Rabenseifner's algorithm (Chan et al. 2007; Table 1 of the paper): 2n(P-1)/P words and 2 log2 P
/// messages where P is a power of two; see `rabenseifner` for other P. The exact sum of the accumulators.
template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
using dense_rabenseifner = dense<E, Comm, Value, Index, rabenseifner<E, Comm, Value>>;

/// The same with 16 bits a value on the wire, half the words: the dense baseline of mixed-precision training. Sums are
/// formed in full precision and rounded where they travel; what is rounded off returns to the residual.
template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
using dense_bfloat16 = dense<E, Comm, Value, Index, rabenseifner<E, Comm, Value, bfloat16>>;

} // namespace oktopk

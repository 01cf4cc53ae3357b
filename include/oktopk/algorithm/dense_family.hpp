// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/codec/bfloat16.hpp>
#include <oktopk/codec/block_float.hpp>
#include <oktopk/codec/identity.hpp>
#include <oktopk/dense/coded_recursive_doubling.hpp>
#include <oktopk/dense/coded_ring_chunked.hpp>
#include <oktopk/dense/halving_doubling.hpp>
#include <oktopk/dense/recursive_doubling.hpp>
#include <oktopk/dense/ring.hpp>
#include <oktopk/dense/ring_chunked.hpp>
#include <oktopk/dense/ring_pipelined.hpp>

#include <cstdint>

// The textbook's dense allreduces as algorithms for gradients: the exact sum of the accumulators. See the headers under
// dense/ for steps and words.
namespace oktopk {

template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
using dense_ring = dense<E, Comm, Value, Index, ring<E, Comm, Value>>;

template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
using dense_ring_chunked = dense<E, Comm, Value, Index, ring_chunked<E, Comm, Value>>;

template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
using dense_ring_pipelined = dense<E, Comm, Value, Index, ring_pipelined<E, Comm, Value>>;

template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
using dense_halving_doubling = dense<E, Comm, Value, Index, halving_doubling<E, Comm, Value>>;

template <execution_space E, communicator Comm, gradient_value Value = float, gradient_index Index = std::int32_t>
using dense_recursive_doubling = dense<E, Comm, Value, Index, recursive_doubling<E, Comm, Value>>;

/// With coded messages; what a lossy codec rounds off returns to the residual.
template <execution_space E, communicator Comm, class Codec, gradient_value Value = float,
          gradient_index Index = std::int32_t>
using dense_coded_ring_chunked = dense<E, Comm, Value, Index, coded_ring_chunked<E, Comm, Value, Codec>>;

template <execution_space E, communicator Comm, class Codec, gradient_value Value = float,
          gradient_index Index = std::int32_t>
using dense_coded_recursive_doubling = dense<E, Comm, Value, Index, coded_recursive_doubling<E, Comm, Value, Codec>>;

} // namespace oktopk

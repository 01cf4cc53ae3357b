// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/algorithm/gaussian_k.hpp>
#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/paper/paper_ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>
#include <oktopk/catalogue/schemes.hpp>

#include <tuple>
#include <type_traits>

namespace oktopk::catalogue {

/// `ok_topk` with policies that are chosen at run time.
template <execution_space E, communicator Comm, sparse_format Format>
using any_ok_topk = ok_topk<E, Comm, Format, any_local_selector, any_global_selector, any_partitioner>;

/// Every algorithm that a text can name: a new one is one entry here.
inline constexpr std::tuple algorithms{
    sparse_scheme{
        "ok_topk", "near-optimal sparse allreduce, every step a policy", "coo",
        []<class E, class C, class F>(arguments<E, C, F>) { return std::type_identity<any_ok_topk<E, C, F>>(); }},
    sparse_scheme{
        "paper_ok_topk", "the same as published", "coo",
        []<class E, class C, class F>(arguments<E, C, F>) { return std::type_identity<paper_ok_topk<E, C, F>>(); }},
    sparse_scheme{"topk_a", "allgather of the selections", "coo",
                  []<class E, class C, class F>(arguments<E, C, F>) { return std::type_identity<topk_a<E, C, F>>(); }},
    sparse_scheme{
        "topk_dsa", "reduce-scatter and allgather of the selections, dense where that is less", "coo_or_dense",
        []<class E, class C, class F>(arguments<E, C, F>) { return std::type_identity<topk_dsa<E, C, F>>(); }},
    sparse_scheme{"gtopk", "a tree that keeps the k largest of its sums", "coo",
                  []<class E, class C, class F>(arguments<E, C, F>) { return std::type_identity<gtopk<E, C, F>>(); }},
    sparse_scheme{
        "gaussian_k", "allgather of what a threshold of a normal distribution selects", "coo",
        []<class E, class C, class F>(arguments<E, C, F>) { return std::type_identity<gaussian_k<E, C, F>>(); }},
    dense_scheme{"dense", "the communicator's own allreduce",
                 []<class E, class C, class V, class I>(arguments<E, C, V, I>) {
                   return std::type_identity<dense<E, C, V, I>>();
                 }},
    coded_scheme{"dense_rabenseifner", "reduce-scatter by halving and allgather by doubling",
                 []<class E, class C, class V, class I, class W>(arguments<E, C, V, I, W>) {
                   return std::type_identity<dense_rabenseifner<E, C, V, I, W>>();
                 }},
    dense_scheme{"dense_bfloat16", "the same with 16 bits a value, whatever the length",
                 []<class E, class C, class V, class I>(arguments<E, C, V, I>) {
                   return std::type_identity<dense_bfloat16<E, C, V, I>>();
                 }},
    dense_scheme{"ring", "a ring of whole blocks",
                 []<class E, class C, class V, class I>(arguments<E, C, V, I>) {
                   return std::type_identity<dense_ring<E, C, V, I>>();
                 }},
    coded_scheme{"ring_chunked", "a ring of blocks in two pieces each",
                 []<class E, class C, class V, class I, class W>(arguments<E, C, V, I, W>) {
                   return std::type_identity<dense_ring_chunked<E, C, V, I, W>>();
                 }},
    dense_scheme{"ring_pipelined", "a ring of blocks in many pieces",
                 []<class E, class C, class V, class I>(arguments<E, C, V, I>) {
                   return std::type_identity<dense_ring_pipelined<E, C, V, I>>();
                 }},
    dense_scheme{"halving_doubling", "halving and doubling, ranks in binary blocks",
                 []<class E, class C, class V, class I>(arguments<E, C, V, I>) {
                   return std::type_identity<dense_halving_doubling<E, C, V, I>>();
                 }},
    coded_scheme{"recursive_doubling", "whole vectors between pairs",
                 []<class E, class C, class V, class I, class W>(arguments<E, C, V, I, W>) {
                   return std::type_identity<dense_recursive_doubling<E, C, V, I, W>>();
                 }},
};

} // namespace oktopk::catalogue

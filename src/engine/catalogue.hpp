// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "engine/engine_space.hpp"

#include <oktopk/catalogue/catalogue.hpp>

#ifdef OKTOPK_ENGINE_ON_DEVICE // whose algorithms are fewer: device_catalogue.cpp
namespace oktopk {

template <>
any_allreduce<detail::engine_space>
make_allreduce<float, std::int32_t>(detail::engine_space const& exec, any_communicator comm, std::string_view text,
                                    gradient_size const& size,
                                    std::span<catalogue::added_codec<detail::engine_space> const> added);

template <>
std::vector<detail::listed_allreduce> list_allreduces<>(std::span<catalogue::added_codec<> const> added);

} // namespace oktopk
#endif

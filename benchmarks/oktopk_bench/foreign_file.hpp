// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace oktopk_bench {

/// The first bytes of a file that `foreign_format` wants, or all where it has fewer.
inline constexpr std::size_t foreign_format_bytes = 64;

/// The format of a file by its first bytes, where people keep gradients in that format and it is not read here; empty
/// where nothing speaks against raw float32. `bytes` is the size of the file.
///
/// A gradient that is refused by mistake is worse than a file of another format that is not noticed. So each format is
/// told by enough bytes that gradients do not begin with them by chance, or by fewer and the name's ending.
std::string foreign_format(std::span<unsigned char const> head, std::int64_t bytes, std::filesystem::path const& name);

} // namespace oktopk_bench

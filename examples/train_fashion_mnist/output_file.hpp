// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

// Files that are there whole or not at all.
namespace fashion {

/// Throws std::runtime_error unless a file can be made at `path`; leaves nothing behind.
void require_writable(std::filesystem::path const& path);

/// Writes under a name of its own beside `path` and renames: a reader never sees half a file. Throws
/// std::runtime_error.
void write_whole(std::filesystem::path const& path, std::span<std::byte const> bytes);
void write_whole(std::filesystem::path const& path, std::string const& text);

} // namespace fashion

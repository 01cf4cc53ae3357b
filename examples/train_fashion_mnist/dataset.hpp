// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "types.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

// Fashion-MNIST, dealt out to the ranks.
namespace fashion {

inline constexpr std::int64_t image_pixels = std::int64_t(28) * 28;
inline constexpr std::int64_t label_count = 10;

/// One rank's share of a set of labelled images.
struct shard {
  images_view images; ///< one image per row, a byte per pixel
  labels_view labels;
  std::int64_t whole = 0; ///< images in the whole set

  std::int64_t size() const { return static_cast<std::int64_t>(labels.extent(0)); }
};

/// The images of one rank.
struct rank_data {
  shard training;
  shard test;
};

/// Reads `FOLDER/PREFIX-images-idx3-ubyte.gz` and its labels, and keeps every `ranks`-th image from `rank` on.
///
/// Throws std::runtime_error with one sentence that names the file and the fault.
shard load_shard(execution const& exec, std::filesystem::path const& folder, std::string const& prefix, int rank,
                 int ranks);

} // namespace fashion

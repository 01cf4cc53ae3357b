// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dataset.hpp"

#include "idx_file.hpp"

#include <stdexcept>

namespace fashion {

namespace {

std::filesystem::path existing(std::filesystem::path const& folder, std::string const& name) {
  std::error_code ignored;
  std::filesystem::path file = folder / name;
  if (!std::filesystem::exists(file, ignored)) {
    throw std::runtime_error(
        "no Fashion-MNIST in " + folder.string() + ": there is no " + name +
        "; get it with `apt-get install dataset-fashion-mnist`, or say where it is with --data DIR");
  }
  return file;
}

void check(std::filesystem::path const& images_file, idx_data const& images, std::filesystem::path const& labels_file,
           idx_data const& labels) {
  if (images.dimensions[1] != 28 || images.dimensions[2] != 28) {
    throw std::runtime_error(images_file.string() + ": images of " + std::to_string(images.dimensions[1]) + " x " +
                             std::to_string(images.dimensions[2]) + " pixels, but those of Fashion-MNIST have 28 x 28");
  }
  if (images.dimensions[0] == 0) {
    throw std::runtime_error(images_file.string() + ": holds no image");
  }
  if (images.dimensions[0] != labels.dimensions[0]) {
    throw std::runtime_error(images_file.string() + " holds " + std::to_string(images.dimensions[0]) + " images, but " +
                             labels_file.string() + " holds " + std::to_string(labels.dimensions[0]) + " labels");
  }
  for (std::size_t i = 0; i < labels.bytes.size(); ++i) {
    if (labels.bytes[i] >= label_count) {
      throw std::runtime_error(labels_file.string() + ": label " + std::to_string(labels.bytes[i]) + " at position " +
                               std::to_string(i) + ", but labels go from 0 to 9");
    }
  }
}

shard deal_out(execution const& exec, idx_data const& images, idx_data const& labels, int rank, int ranks) {
  std::int64_t const whole = labels.dimensions[0];
  auto const mine = static_cast<std::size_t>((whole - rank + ranks - 1) / ranks);
  shard part{images_view("fashion::images", mine, static_cast<std::size_t>(image_pixels)),
             labels_view("fashion::labels", mine), whole};
  auto const host_images = Kokkos::create_mirror_view(part.images);
  auto const host_labels = Kokkos::create_mirror_view(part.labels);
  for (std::size_t i = 0; i < mine; ++i) {
    std::size_t const source = static_cast<std::size_t>(rank) + i * static_cast<std::size_t>(ranks);
    host_labels(i) = labels.bytes[source];
    for (std::size_t pixel = 0; pixel < static_cast<std::size_t>(image_pixels); ++pixel) {
      host_images(i, pixel) = images.bytes[source * static_cast<std::size_t>(image_pixels) + pixel];
    }
  }
  Kokkos::deep_copy(exec, part.images, host_images);
  Kokkos::deep_copy(exec, part.labels, host_labels);
  exec.fence();
  return part;
} // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): it cannot follow how a view counts its users

} // namespace

shard load_shard(execution const& exec, std::filesystem::path const& folder, std::string const& prefix, int rank,
                 int ranks) {
  std::filesystem::path const images_file = existing(folder, prefix + "-images-idx3-ubyte.gz");
  std::filesystem::path const labels_file = existing(folder, prefix + "-labels-idx1-ubyte.gz");
  idx_data const images = read_idx(images_file, 3);
  idx_data const labels = read_idx(labels_file, 1);
  check(images_file, images, labels_file, labels);

  return deal_out(exec, images, labels, rank, ranks);
}

} // namespace fashion

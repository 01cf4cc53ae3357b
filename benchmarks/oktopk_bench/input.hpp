// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "npy.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace oktopk_bench {

/// What one rank found wrong with its own files; becomes every rank's error once the ranks have agreed on it.
class local_fault : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Where one rank's accumulators come from. Measured steps count from 0; steps of the warm-up are negative, so that a
/// measured step sees the same input whatever the warm-up.
class input {
public:
  input() = default;
  input(input const&) = delete;
  input& operator=(input const&) = delete;
  virtual ~input() = default;

  /// The number of values of each step.
  virtual std::int64_t length() const = 0;
  /// One line for people.
  virtual std::string description() const = 0;
  /// Writes the accumulator of `step`; throws `local_fault`.
  virtual void read(std::int64_t step, std::span<float> values) = 0;
};

/// The file of a rank: "{rank}" stands for it, and forms of Python that put zeros in front, "{rank:03}" or "{rank:02d}".
/// Throws `local_fault` where there is none, or another form.
std::string path_of_rank(std::string const& pattern, int rank);

/// The patterns of a list, separated by commas. Each has a "{rank}": a comma before that belongs to a name, and so does one
/// behind the last.
std::vector<std::string> patterns_in(std::string_view list);

/// Accumulators from files, one per rank and iteration: NumPy's (.npy) or raw little-endian float32.
class file_input : public input {
public:
  /// Refuses files that are missing, empty, damaged, of another kind (told by their first 64 KiB), of different lengths
  /// or no whole number of values.
  file_input(std::vector<std::string> const& patterns, int rank);
  /// The same for one file, whatever its name.
  explicit file_input(std::filesystem::path const& path) : patterns_{path.string()} { add(path); }

  std::int64_t length() const override { return length_; }
  std::string description() const override;
  /// Refuses values that are not finite, too.
  void read(std::int64_t step, std::span<float> values) override;

private:
  struct source {
    std::filesystem::path path;
    npy_layout layout; // raw float32 is a NumPy file without a header
  };

  static source open(std::filesystem::path const& path);
  void add(std::filesystem::path const& path);

  std::vector<std::string> patterns_;
  std::vector<source> sources_;
  std::int64_t length_ = 0;
};

/// Gradients as training makes them, from a seed: the same numbers in every run.
///
/// * Uneven along the index: layers whose sizes and scales differ by orders of magnitude, and within a layer rows that
///   are livelier than others.
/// * Heavy-tailed: each coordinate has a scale of its own, the product of its layer's, its row's and its own draw, and
///   noise is cubed in part. All ranks share the scales, because they train one model; so their selections overlap.
/// * Different per rank: beside a part that all ranks share, each has noise of its own (its mini-batch). With 16 ranks
///   and density 1 % the union of their selections is about 10 % of the entries, as measured in training.
/// * Slowly changing: the noise glides from one draw to the next within `glide_steps` steps, and the scales of the
///   layers drift.
class synthetic_input : public input {
public:
  synthetic_input(std::int64_t length, std::uint64_t seed, int rank);

  std::int64_t length() const override { return length_; }
  std::string description() const override;
  void read(std::int64_t step, std::span<float> values) override;

private:
  struct layer {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    double drift_phase = 0;
  };

  void draw_layers();
  void draw_all_scales();
  void draw_scales(layer const& one, std::uint64_t number);

  static constexpr std::int64_t glide_steps = 16;

  std::int64_t length_;
  std::uint64_t seed_;
  std::uint64_t rank_;
  std::vector<layer> layers_;
  std::vector<float> scales_; // drawn by the first read, so that a length too large fails elsewhere first
};

} // namespace oktopk_bench

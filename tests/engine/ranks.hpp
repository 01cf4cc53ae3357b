// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"

#include <oktopk/engine.h>

#include <Kokkos_Core.hpp>

#include <atomic>
#include <concepts>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include <unistd.h>

// The C interface as tests use it: ranks are threads that meet in a folder, and a code that is not 0 is an exception with the sentence.
namespace oktopk_tests {

struct engine_error : std::runtime_error {
  engine_error(std::int32_t what, std::string const& sentence) : std::runtime_error(sentence), code(what) {}
  std::int32_t code;
};

inline void must(std::int32_t code) {
  if (code != OKTOPK_ENGINE_OK) {
    throw engine_error(code, oktopk_engine_last_error());
  }
}

using group_handle = std::unique_ptr<oktopk_engine_group, decltype(&oktopk_engine_group_free)>;
using averager_handle = std::unique_ptr<oktopk_engine_averager, decltype(&oktopk_engine_averager_free)>;

/// Where all groups of this program meet.
inline std::string const& meeting_folder() {
  struct scratch {
    scratch() { std::filesystem::create_directory(path); }
    ~scratch() { std::filesystem::remove_all(path); }
    scratch& operator=(scratch&&) = delete;
    std::string path = std::filesystem::temp_directory_path() / ("oktopk_engine_" + std::to_string(::getpid()));
  };
  static scratch const one;
  return one.path;
}

inline oktopk_engine_group_options group_of(int rank, int size, std::string const& name, double limit = 60) {
  oktopk_engine_group_options options;
  oktopk_engine_group_defaults(&options);
  options.rank = rank;
  options.size = size;
  options.folder = meeting_folder().c_str();
  options.interface_name = "127.0.0.1";
  options.name = name.c_str();
  options.time_limit = limit;
  return options;
}

using heard_of_ranks = std::vector<std::pair<std::int32_t, std::string>>;
using rank_body = std::function<void(oktopk_engine_group*)>;
using group_change = std::function<void(oktopk_engine_group_options&)>;

/// What each rank of `body(group)` threw: code and sentence; 0 and nothing where it returned. `change` makes other groups.
inline heard_of_ranks heard_on(int ranks, rank_body const& body, double limit = 60, group_change const& change = {}) {
  static std::atomic<int> number{0};
  [[maybe_unused]] static bool const ends = [] { // averagers have views of Kokkos, which the main program finalizes
    Kokkos::push_finalize_hook([] {
      oktopk_engine_finalize();
      oktopk_engine_group* late = nullptr;
      auto const options = group_of(0, 1, "late");
      if (oktopk_engine_group_make(&options, &late) != OKTOPK_ENGINE_BAD_STATE) {
        std::abort();
      }
    });
    return true;
  }();
  std::string const name = "test " + std::to_string(number++);
  heard_of_ranks heard(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        auto options = group_of(rank, ranks, name, limit);
        if (change) {
          change(options);
        }
        oktopk_engine_group* made = nullptr;
        must(oktopk_engine_group_make(&options, &made));
        group_handle const group(made, &oktopk_engine_group_free);
        body(made);
      } catch (engine_error const& caught) {
        heard[static_cast<std::size_t>(rank)] = {caught.code, caught.what()};
      } catch (std::exception const& caught) {
        heard[static_cast<std::size_t>(rank)] = {-1, caught.what()};
      }
    });
  }
  for (std::thread& each : threads) {
    each.join();
  }
  return heard;
}

/// The first fault of a run that should have none; empty where all is well.
inline std::string fault_on(int ranks, rank_body const& body, group_change const& change = {}) {
  for (auto const& [code, sentence] : heard_on(ranks, body, 60, change)) {
    if (code != OKTOPK_ENGINE_OK) {
      return std::string(code < 0 ? "" : oktopk_engine_fault_name(code)) + ": " + sentence;
    }
  }
  return {};
}

/// What is wrong where all ranks should hear the same error, of this code and with these words; empty where nothing is.
inline std::string unlike(heard_of_ranks const& heard, std::int32_t code, std::string const& words) {
  for (auto const& [has, sentence] : heard) {
    if (has != code || sentence != heard[0].second || sentence.find(words) == std::string::npos) {
      return std::to_string(has) + " (" + sentence + ") is not " + std::to_string(code) + " with '" + words + "'";
    }
  }
  return {};
}

inline averager_handle made_on(oktopk_engine_group* group, oktopk_engine_averager_options const& options) {
  oktopk_engine_averager* made = nullptr;
  must(oktopk_engine_averager_make(group, &options, &made));
  return {made, &oktopk_engine_averager_free};
}

/// Of tensors with keys.
inline oktopk_engine_averager_options averager_of(char const* algorithm, std::int32_t sums = OKTOPK_ENGINE_FLOAT32) {
  oktopk_engine_averager_options options;
  oktopk_engine_averager_defaults(&options);
  options.algorithm = algorithm;
  options.sums = sums;
  return options;
}

template <class Value>
inline constexpr std::int32_t element = std::same_as<Value, float>    ? OKTOPK_ENGINE_FLOAT32
                                        : std::same_as<Value, double> ? OKTOPK_ENGINE_FLOAT64
                                                                      : OKTOPK_ENGINE_FLOAT16;

template <class Value>
oktopk_engine_arrival arrival_of(std::vector<Value>& values) {
  oktopk_engine_arrival arrival;
  oktopk_engine_arrival_defaults(&arrival);
  arrival.values = values.data();
  arrival.length = std::ssize(values);
  arrival.element = element<Value>;
  return arrival;
}

template <class Value>
oktopk_engine_arrival arrival_of(std::vector<Value>& values, char const* key) {
  auto arrival = arrival_of(values);
  arrival.key = key;
  return arrival;
}

template <class Value>
oktopk_engine_arrival arrival_of(std::vector<Value>& values, std::vector<std::int32_t> const& tensors) {
  auto arrival = arrival_of(values);
  arrival.tensors = tensors.data();
  arrival.tensor_count = std::ssize(tensors);
  return arrival;
}

inline std::vector<char> saved(oktopk_engine_averager* averager,
                               decltype(oktopk_engine_save)* save = oktopk_engine_save) {
  oktopk_engine_blob* blob = nullptr;
  must(save(averager, &blob));
  auto const* const begin = static_cast<char const*>(oktopk_engine_blob_data(blob));
  std::vector<char> bytes(begin, begin + oktopk_engine_blob_size(blob));
  oktopk_engine_blob_free(blob);
  return bytes;
}

} // namespace oktopk_tests

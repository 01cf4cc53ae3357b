// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "checkpoints.hpp"

#include "together.hpp"

#include "programs/pending_file.hpp"

#include <oktopk/comm/collectives.hpp>
#include <oktopk/core/checkpoint.hpp>
#include <oktopk/core/integers.hpp>

#include <algorithm>
#include <fstream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace fashion {

namespace {

namespace files = std::filesystem;

// What FILE has.
struct manifest {
  std::int64_t iteration = 0;
  std::vector<char> training;         // in words
  std::vector<std::uint64_t> digests; // of the ranks' files

  static std::string type_name() { return "train_fashion_mnist"; }

  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    visit(state.iteration);
    visit(state.training);
    visit(state.digests);
  }
};

// What a rank's file has, in two checkpoints: what the training depends on is the same in every run, and what was
// reported of it has times.
struct numbers_of_rank : training_state {
  static std::string type_name() { return "train_fashion_mnist: a rank"; }

  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    visit(state.iteration);
    visit(state.parameters);
    visit(state.optimizer);
    visit(state.local);
    visit(state.global);
  }
};

struct history_of_rank : training_state {
  static std::string type_name() { return "train_fashion_mnist: what was told"; }

  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    measurements::each_part(state.epoch, visit);
    report::story::each_part(state.history, visit);
  }
};

training_state state_in(std::string const& bytes) {
  std::istringstream in(bytes);
  training_state state = oktopk::load_next<numbers_of_rank>(in);
  training_state saved_history = oktopk::load<history_of_rank>(in);
  state.epoch = saved_history.epoch;
  state.history = std::move(saved_history.history);
  return state;
}

std::uint64_t digest_of(std::string const& bytes) {
  oktopk::detail::fnv1a digest;
  digest.add(bytes.data(), bytes.size());
  return digest.value();
}

// Gives the digest of what is written.
std::uint64_t write_to_disk(training_state state, files::path const& name) {
  oktopk_programs::pending_file file(name);
  oktopk::detail::fnv1a digest;
  auto const write = [&](std::vector<char> const& bytes) {
    digest.add(bytes.data(), bytes.size());
    file.write(std::as_bytes(std::span(bytes)));
  };
  numbers_of_rank numbers{std::move(state)}; // moved, for it is large
  write(oktopk::detail::checkpoint_of(numbers));
  write(oktopk::detail::checkpoint_of(history_of_rank{std::move(numbers)}));
  file.close();
  file.commit_to_disk();
  return digest.value();
}

[[noreturn]] void refuse(files::path const& file, std::string const& what) {
  throw std::runtime_error("the checkpoint " + file.string() + " " + what);
}

std::string contents(files::path const& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream all;
  if (!in || !(all << in.rdbuf())) {
    refuse(file, "cannot be read");
  }
  return std::move(all).str();
}

// Gives what `read` makes of a file, whose errors do not tell its name.
template <class Read>
auto read_from(files::path const& file, Read const& read) {
  try {
    return read(contents(file));
  } catch (oktopk::error const& found) {
    refuse(file, "cannot be used: " + found.sentence());
  }
}

std::string words(std::vector<char> const& text) {
  return {text.begin(), text.end()};
}

} // namespace

checkpoints::checkpoints(oktopk::mpi_communicator const& world, files::path name, std::int64_t every,
                         std::string training)
    : world_(world), name_(std::move(name)), every_(every),
      training_(std::to_string(world.size()) + " ranks, " + std::move(training)) {
  together(world_, "--checkpoint", [this] {
    if (!name_.empty()) {
      oktopk_programs::pending_file{file_of(0)}; // can be made, and vanishes again
    }
  });
}

std::optional<training_state> checkpoints::newest() {
  // Rank 0 tells the others what FILE has: they may not see it, or see an old one.
  manifest saved;
  bool const found = together(world_, "--checkpoint", [&] {
    if (name_.empty() || world_.rank() != 0 || !files::exists(files::symlink_status(name_))) {
      return false;
    }
    saved = read_from(name_, [](std::string const& bytes) {
      std::istringstream in(bytes);
      return oktopk::load<manifest>(in);
    });
    if (words(saved.training) != training_) {
      refuse(name_, "is of another training: " + words(saved.training) + "; this one is: " + training_);
    }
    if (saved.digests.size() != static_cast<std::size_t>(world_.size()) || saved.iteration < 1) {
      refuse(name_, "is damaged");
    }
    return true;
  });
  if (name_.empty()) {
    return std::nullopt;
  }
  std::vector<std::uint64_t> received(static_cast<std::size_t>(world_.size()) + 1); // the iteration, and the digests
  if (found) {
    received.front() = static_cast<std::uint64_t>(saved.iteration);
    std::copy(saved.digests.begin(), saved.digests.end(), received.begin() + 1);
  }
  add_over_ranks(received);
  auto const iteration = static_cast<std::int64_t>(received.front());
  std::uint64_t const digest = received[static_cast<std::size_t>(world_.rank()) + 1];
  auto state = together(world_, "--checkpoint", [&]() -> std::optional<training_state> {
    if (iteration == 0) {
      return std::nullopt;
    }
    return read_from(file_of(iteration), [&](std::string const& bytes) {
      training_state read = state_in(bytes);
      if (digest_of(bytes) != digest || read.iteration != iteration) {
        refuse(file_of(iteration), "is not the one that " + name_.string() + " was written with");
      }
      return read;
    });
  });
  remove_all_but(iteration);
  return state;
}

void checkpoints::save(training_state state) {
  std::int64_t const iteration = state.iteration;
  manifest saved{iteration, {training_.begin(), training_.end()}, {}};
  saved.digests.resize(static_cast<std::size_t>(world_.size()));
  together(world_, "--checkpoint", [&] {
    saved.digests[static_cast<std::size_t>(world_.rank())] = write_to_disk(std::move(state), file_of(iteration));
  });
  add_over_ranks(saved.digests);
  together(world_, "--checkpoint", [&] {
    if (world_.rank() == 0) {
      std::ostringstream out;
      oktopk::save(out, saved);
      oktopk_programs::write_whole_to_disk(name_, out.str());
    }
  });
  remove_all_but(iteration);
}

// Numbers of which only one rank has each.
void checkpoints::add_over_ranks(std::vector<std::uint64_t>& numbers) {
  oktopk::collective_workspace workspace;
  oktopk::allreduce_integers(world_, std::span(numbers), oktopk::reduction::sum, oktopk::phase::control, workspace);
}

files::path checkpoints::file_of(std::int64_t iteration) const {
  files::path file = name_;
  file += "." + std::to_string(iteration) + "." + std::to_string(world_.rank());
  return file;
}

// Of this rank, what is left of other iterations, whole or not. What cannot be removed does no harm.
void checkpoints::remove_all_but(std::int64_t iteration) const {
  std::error_code ignored;
  if (world_.rank() == 0) {
    files::remove(name_.string() + oktopk_programs::pending_file::ending, ignored);
  }
  std::string const front = name_.filename().string() + ".";
  std::string const back = "." + std::to_string(world_.rank());
  files::path const folder = name_.has_parent_path() ? name_.parent_path() : files::path(".");
  for (auto const& entry : files::directory_iterator(folder, ignored)) {
    std::string file = entry.path().filename().string();
    bool const part = file.ends_with(oktopk_programs::pending_file::ending);
    if (part) {
      file.resize(file.size() - std::string(oktopk_programs::pending_file::ending).size());
    }
    if (file.size() <= front.size() + back.size() || !file.starts_with(front) || !file.ends_with(back)) {
      continue;
    }
    std::string const number = file.substr(front.size(), file.size() - front.size() - back.size());
    bool const counts = std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (counts && (part || number != std::to_string(iteration))) {
      files::remove(entry.path(), ignored);
    }
  }
}

} // namespace fashion

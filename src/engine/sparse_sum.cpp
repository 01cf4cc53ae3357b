// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Sums of sparse vectors behind the C interface: `oktopk::sparse_sum` of four types of numbers. A complex number is two of them.

#include "engine/sparse_sum.hpp"

#include "engine/engine_space.hpp"

#include <oktopk/comm/agreement.hpp>
#include <oktopk/engine.h>
#ifndef OKTOPK_ENGINE_ON_DEVICE
#include <oktopk/algorithm/sparse_sum.hpp>
#endif

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace oktopk::detail {

namespace {

struct summed_type {
  char const* name;
  std::int64_t bytes; // of a value; 0: it is not summed
  std::int64_t numbers;
};

constexpr std::array<summed_type, 8> types{{{"float32", 4, 1},
                                            {"float64", 8, 1},
                                            {"float16", 0, 1},
                                            {"bfloat16", 0, 1},
                                            {"int32", 4, 1},
                                            {"int64", 8, 1},
                                            {"complex64", 8, 2},
                                            {"complex128", 16, 2}}};

/// What is wrong with a contribution, whose element is one of the types; empty where nothing is.
std::string fault_of(sparse_contribution const& given, summed_type const& type) {
  if (type.bytes == 0) {
    return std::string("sums of sparse vectors are not of ") + type.name + ": widen the values to float32";
  }
  if (given.length < 0 || given.width < 1) {
    return "a vector has " + std::to_string(given.length) + " rows of " + std::to_string(given.width) +
           " values: rows are 0 or more, and each has a value";
  }
  if (given.count < 0 || (given.count > 0 && (given.indices == nullptr || given.values == nullptr))) {
    return "the entries are a null pointer, or their number is negative";
  }
  // A rank sums in a dense array, whose rows may be those of nearly the whole vector: a process without memory for that would be
  // killed, or lose the group.
  double const has = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE)) / 2;
  double const takes =
      static_cast<double>(given.length) * (static_cast<double>(given.width) * static_cast<double>(type.bytes) + 0.125);
  if (takes > has) {
    return "sums of " + std::to_string(given.length) + " rows of " + std::to_string(given.width) + " values of " +
           type.name + " may take the room of the whole vector, which is more than half the memory of this machine, " +
           std::to_string(static_cast<std::int64_t>(has / (1 << 20))) + " MiB";
  }
  return {};
}

#ifndef OKTOPK_ENGINE_ON_DEVICE
template <class Number>
class sparse_adder final : public any_sparse_adder {
public:
  sparse_adder(any_communicator comm, std::int64_t length, std::int64_t width)
      : sum_(engine_space(), std::move(comm), {.length = length, .width = width}) {}

  summed_entries sum(sparse_contribution const& given) override {
    auto const count = static_cast<std::size_t>(given.count);
    view_of<std::int64_t const> const indices(given.indices, count);
    view_of<Number const> const values(static_cast<Number const*>(given.values),
                                       count * static_cast<std::size_t>(sum_.width()));
    auto const& all = sum_(indices, values);
    summed_entries made;
    made.count = all.size();
    made.indices.reset(new std::int64_t[all.indices().extent(0)]);
    made.values.reset(new std::byte[all.values().extent(0) * sizeof(Number)]);
    if (made.count > 0) {
      std::memcpy(made.indices.get(), all.indices().data(), all.indices().extent(0) * sizeof(std::int64_t));
      std::memcpy(made.values.get(), all.values().data(), all.values().extent(0) * sizeof(Number));
    }
    return made;
  }

private:
  template <class T>
  using view_of = Kokkos::View<T*, typename engine_space::memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  sparse_sum<engine_space, any_communicator, sum_policies<Number, std::int64_t>> sum_;
};

std::unique_ptr<any_sparse_adder> adder_of(any_communicator comm, std::int32_t element, std::int64_t length,
                                           std::int64_t width) {
  width *= types[static_cast<std::size_t>(element)].numbers;
  switch (element) {
  case OKTOPK_ENGINE_INT32: return std::make_unique<sparse_adder<std::int32_t>>(std::move(comm), length, width);
  case OKTOPK_ENGINE_INT64: return std::make_unique<sparse_adder<std::int64_t>>(std::move(comm), length, width);
  case OKTOPK_ENGINE_FLOAT64:
  case OKTOPK_ENGINE_COMPLEX128: return std::make_unique<sparse_adder<double>>(std::move(comm), length, width);
  default: return std::make_unique<sparse_adder<float>>(std::move(comm), length, width);
  }
}
#else
std::unique_ptr<any_sparse_adder> adder_of(any_communicator, std::int32_t, std::int64_t, std::int64_t) {
  throw error(fault::option_out_of_range, "the engine of a device has no sums of sparse vectors: that of the host has");
}
#endif

} // namespace

summed_entries sparse_sums::sum(any_communicator comm, std::string const& caller, sparse_contribution const& given) {
  bool const is_known = given.element >= 0 && given.element < std::ssize(types);
  agreement terms(caller + ": sparse_sum");
  terms.note(fault::option_out_of_range, given.fault);
  if (!is_known) {
    terms.note(fault::option_out_of_range, "there is no type of values " + std::to_string(given.element));
  } else {
    summed_type const& type = types[static_cast<std::size_t>(given.element)];
    terms.note(fault::option_out_of_range, fault_of(given, type));
    terms.fact("subject", given.subject).fact("values", type.name);
  }
  terms.fact("length", given.length).fact("width", given.width).check_on(comm);

  auto const found = std::find_if(all_.begin(), all_.end(), [&](kept const& each) {
    return each.element == given.element && each.length == given.length && each.width == given.width;
  });
  if (found != all_.end()) {
    std::rotate(found, found + 1, all_.end());
  } else {
    auto made = adder_of(std::move(comm), given.element, given.length, given.width);
    if (all_.size() == most) {
      all_.erase(all_.begin());
    }
    all_.push_back({given.element, given.length, given.width, std::move(made)});
  }
  return all_.back().of->sum(given);
}

} // namespace oktopk::detail

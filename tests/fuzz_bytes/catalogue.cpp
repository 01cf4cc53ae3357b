// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Texts that name an algorithm.

#include "target.hpp"

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/catalogue/option_reader.hpp>
#include <oktopk/comm/self.hpp>

namespace oktopk_fuzz {

void run(std::span<std::byte const> input) {
  using execution = Kokkos::DefaultHostExecutionSpace;
  drawn from(input);
  std::int64_t const length = from.up_to(300);
  std::string const text = from.text();
  try {
    auto allreduce =
        oktopk::make_allreduce(execution(), oktopk::self_communicator(), text, {.length = length, .density = 0.1});
    Kokkos::View<float*, execution::memory_space> accumulator("accumulator", static_cast<std::size_t>(length));
    Kokkos::deep_copy(accumulator, 0.5F);
    allreduce(accumulator);
    require(allreduce.text() == text, "another text");
  } catch (oktopk::error const& refused) {
    require(refused.what() != nullptr, "an error without words");
  }
}

std::vector<bytes> seeds() {
  std::vector<bytes> made;
  auto const add = [&](std::string const& text) { made.push_back(written().number(std::uint64_t(96)).text(text)); };
  for (oktopk::detail::listed_allreduce const& each : oktopk::list_allreduces()) {
    add(each.name);
    for (oktopk::detail::listed_option const& option : each.options) {
      add(each.name + "(" + option.key + "=" + option.value + ")");
      // The alternatives stand at the end of what is said of the option.
      if (auto const colon = option.about.rfind(": "); colon != std::string::npos) {
        for (std::string const& value : oktopk::detail::split_list(option.about.substr(colon + 2))) {
          add(each.name + "( " + option.key + " = " + value + " )");
        }
      }
    }
  }
  return made;
}

} // namespace oktopk_fuzz

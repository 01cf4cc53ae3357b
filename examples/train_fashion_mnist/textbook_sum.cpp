// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "textbook_sum.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#ifdef FASHION_WITH_ZFP
#include <oktopk/codec/zfp.hpp>
#endif

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace fashion {

namespace {

template <class Sum>
class sum_of final : public any_sum {
public:
  explicit sum_of(Sum sum) : sum_(std::move(sum)) {}

  bool lossless() const override { return Sum::lossless; }
  std::string name() const override { return std::string(sum_.name()); }

  std::string describe() const override {
    if constexpr (requires { sum_.describe(); }) {
      return sum_.describe();
    } else {
      return name();
    }
  }

  std::string fault() const override { return oktopk::detail::fault_of_policy(sum_); }

  double bound_words(std::int64_t count, int ranks) const override { return sum_.bound_words(count, ranks); }

  void run(execution const& exec, communicator& comm, float* values, float* lost, std::int64_t count) override {
    sum_.run(exec, comm, values, lost, count);
  }

private:
  Sum sum_;
};

template <class Sum>
std::unique_ptr<any_sum> plain() {
  return std::make_unique<sum_of<Sum>>(Sum());
}

template <template <class, class, class, class> class Sum, class Codec>
std::unique_ptr<any_sum> coded_with(options const& how) {
  using sum = Sum<execution, communicator, float, oktopk::coded_wire<Codec>>;
  typename sum::options asked;
  asked.level = how.codec_level == "message" ? oktopk::codec_level::message : oktopk::codec_level::collective;
  if constexpr (requires { asked.codec.rate; }) {
    asked.codec.rate = static_cast<int>(how.rate.value_or(default_rate));
  }
  return std::make_unique<sum_of<sum>>(sum(asked));
}

template <template <class, class, class, class> class Sum>
std::unique_ptr<any_sum> maybe_coded(options const& how) {
  if (how.codec.empty()) {
    return plain<Sum<execution, communicator, float, oktopk::plain_wire>>();
  }
  if (how.codec == "identity") {
    return coded_with<Sum, oktopk::identity>(how);
  }
  if (how.codec == "bfloat16") {
    return coded_with<Sum, oktopk::bfloat16>(how);
  }
  if (how.codec == "block_float") {
    return coded_with<Sum, oktopk::block_float>(how);
  }
#ifdef FASHION_WITH_ZFP
  if (how.codec == "zfp") {
    if constexpr (oktopk::detail::is_device<execution>) {
      throw oktopk::error(oktopk::fault::option_out_of_range, "--codec zfp codes in host memory, not on a device");
    } else {
      return coded_with<Sum, oktopk::zfp>(how);
    }
  }
#endif
  throw std::logic_error("the codec " + how.codec + " was accepted and is not there");
}

} // namespace

bool is_textbook(std::string_view algorithm) {
  return std::find(textbook_names.begin(), textbook_names.end(), algorithm) != textbook_names.end();
}

std::unique_ptr<any_sum> make_textbook_sum(options const& how) {
  if (how.algorithm == "ring") {
    return plain<oktopk::ring<execution, communicator, float>>();
  }
  if (how.algorithm == "ring_chunked") {
    return maybe_coded<oktopk::ring_chunked>(how);
  }
  if (how.algorithm == "ring_pipelined") {
    return plain<oktopk::ring_pipelined<execution, communicator, float>>();
  }
  if (how.algorithm == "halving_doubling") {
    return plain<oktopk::halving_doubling<execution, communicator, float>>();
  }
  if (how.algorithm == "recursive_doubling") {
    return maybe_coded<oktopk::recursive_doubling>(how);
  }
  throw std::logic_error(how.algorithm + " is none of the textbook's");
}

} // namespace fashion

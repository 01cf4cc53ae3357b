// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/sparse_reduce.hpp>
#include <oktopk/catalogue/algorithms.hpp>
#include <oktopk/comm/any_communicator.hpp>

#include <memory>
#include <string>
#include <utility>

/// Sums of sparse vectors that a text names. A file that includes this compiles all of them for the types that it names.
namespace oktopk {

/// The size of vectors that are sparse already.
struct sparse_size {
  detail::element_count length = 0; ///< indices lie in [0, length)
  detail::element_count width = 1;  ///< values of each index, a row; at least 1
};

/// A `sparse_sum` or `sparse_reduce_scatter` whose policies are chosen at run time: one virtual call per call of the
/// collective inside. Owns it. Results, messages and errors are those of the collective. Made by `make_sparse_sum`.
template <execution_space E, detail::summed_value Value = float, gradient_index Index = std::int32_t>
class any_sparse_sum {
public:
  using execution_space = E;
  using communicator_type = any_communicator;
  using index_type = Index;
  using value_type = Value;
  using entries_type = sparse_entries<Index, Value, typename E::memory_space>;

  /// Makes a `Sum` inside. Collective; throws the errors of its constructor.
  template <class Sum>
  any_sparse_sum(std::in_place_type_t<Sum>, E const& exec, any_communicator const& comm,
                 typename Sum::options const& how, std::string text)
      : inside_(std::make_unique<holder<Sum>>(exec, comm, how)), text_(std::move(text)) {}

  /// The text that asked for it.
  std::string const& text() const { return text_; }
  std::int64_t length() const { return inside_->length(); }
  std::int64_t width() const { return inside_->width(); }
  /// As in `sparse_sum`.
  std::span<std::int64_t const> boundaries() const { return inside_->boundaries(); }
  double bound_words() const { return inside_->bound_words(); }
  call_statistics const& last_call() const { return inside_->last_call(); }
  any_communicator& comm() { return inside_->comm(); }

  /// Collective; as that of `sparse_sum`.
  template <detail::view_of_entries<Index, E> Indices, detail::view_of_entries<Value, E> Values>
  entries_type const& operator()(Indices const& indices, Values const& values) {
    return inside_->call(detail::given_by<E>(indices, values, width()));
  }

private:
  using given_type = detail::given_or_fault<E, Index, Value>;

  struct holder_base {
    holder_base() = default;
    holder_base& operator=(holder_base&&) = delete;
    virtual ~holder_base() = default;

    virtual std::int64_t length() const = 0;
    virtual std::int64_t width() const = 0;
    virtual std::span<std::int64_t const> boundaries() const = 0;
    virtual double bound_words() const = 0;
    virtual call_statistics const& last_call() const = 0;
    virtual any_communicator& comm() = 0;
    virtual entries_type const& call(given_type const& given) = 0;
  };

  template <class Sum>
  struct holder final : holder_base {
    struct opened : Sum {
      using Sum::Sum;
      using Sum::sum_given;
    };

    holder(E const& exec, any_communicator const& comm, typename Sum::options const& how) : sum(exec, comm, how) {}

    std::int64_t length() const override { return sum.length(); }
    std::int64_t width() const override { return sum.width(); }
    std::span<std::int64_t const> boundaries() const override { return sum.boundaries(); }
    double bound_words() const override { return sum.bound_words(); }
    call_statistics const& last_call() const override { return sum.last_call(); }
    any_communicator& comm() override { return sum.comm(); }
    entries_type const& call(given_type const& given) override { return sum.sum_given(given); }

    opened sum;
  };

  std::unique_ptr<holder_base> inside_;
  std::string text_;
};

namespace catalogue {

/// Policies of a sum that a text chooses. A mean counts, so it takes schedules of one stage alone.
template <class Policies, class Format, class Combiner, class Schedule = any_schedule>
struct chosen_sum : Policies {
  using format = Format;
  using combiner = Combiner;
  using schedule = Schedule;
};

/// Visits the combiners and formats of a sum, each of which is a type of its own: `sink(type_identity<Sum>, options)`.
template <template <class, class, class> class Type, class Policies, class E, class Value, class Index, class Sink>
void visit_sums(detail::option_reader& in, sparse_size const& size, Sink const& sink) {
  using number = typename detail::numbers_of<Value>::type;
  auto const with = [&]<class Chosen>(std::type_identity<Chosen>) {
    using sum = Type<E, any_communicator, Chosen>;
    typename sum::options how{.length = size.length, .width = size.width};
    policy_reader{in}.read(how);
    sink(std::type_identity<sum>(), how);
  };
  auto const with_format = [&]<class Format>(std::type_identity<Format>) {
    with(std::type_identity<chosen_sum<Policies, Format, sum_of<number>>>());
  };
  using entries = gap8<number, Index>;
  using choices = std::vector<detail::option_reader::choice>;
  choices on_wire{{"gap8", [&] { with_format(std::type_identity<entries>()); }},
                  {"coo", [&] { with_format(std::type_identity<coo<number, Index>>()); }}};
  if constexpr (gradient_value<number>) {
    on_wire.push_back({"packed", [&] { with_format(std::type_identity<packed<number, Index>>()); }});
  }
  choices kinds{{"sum", [&] { in.choose("format", on_wire, "gap8", "entries on the wire"); }}};
  if constexpr (std::is_same_v<number, Value>) { // which can be ordered
    kinds.push_back({"max", [&] { with(std::type_identity<chosen_sum<Policies, entries, max_of<number>>>()); }});
    kinds.push_back({"min", [&] { with(std::type_identity<chosen_sum<Policies, entries, min_of<number>>>()); }});
  }
  if constexpr (std::is_floating_point_v<number>) {
    kinds.push_back(
        {"mean", [&] { with(std::type_identity<chosen_sum<Policies, entries, mean_of<number>, rotated>>()); }});
  }
  in.choose("combiner", kinds, "sum", "what becomes of the values of an index");
}

} // namespace catalogue

/// Makes the sum of sparse vectors that a text names, over any communicator: `sparse_sum`,
/// `sparse_sum(format=packed, reduce=radix(16), ascending=true)`, `sparse_sum(combiner=mean)`, `sparse_reduce_scatter`.
/// Names and options are those of the classes; formats are gap8, coo and packed, and another combiner takes gap8.
///
/// Collective; the text and the size are the same on all ranks. Throws on every rank: `option_out_of_range` if the text
/// has another form, or if a name, a key or a value is unknown, with a list of the right ones; `ranks_disagree` if the
/// texts differ; the errors of the constructor of `sparse_sum`.
template <detail::summed_value Value = float, gradient_index Index = std::int32_t, execution_space E>
any_sparse_sum<E, Value, Index> make_sparse_sum(E const& exec, any_communicator comm, std::string_view text,
                                                sparse_size const& size) {
  using any = any_sparse_sum<E, Value, Index>;
  std::function<any()> make;
  agreement terms("make_sparse_sum");
  terms.fact("sum", text);
  try {
    detail::option_reader in(detail::allreduce_request::parse(text, "a sum"));
    auto const visit = [&](detail::option_reader& from, auto const& sink) {
      if (in.name() == "sparse_sum") {
        catalogue::visit_sums<sparse_sum, sum_policies<Value, Index>, E, Value, Index>(from, size, sink);
      } else if (in.name() == "sparse_reduce_scatter") {
        catalogue::visit_sums<sparse_reduce_scatter, scatter_policies<Value, Index>, E, Value, Index>(from, size, sink);
      } else {
        throw error(fault::option_out_of_range,
                    "there is no sum \"" + in.name() + "\"; there are sparse_sum, sparse_reduce_scatter");
      }
    };
    visit(in, [&]<class Sum>(std::type_identity<Sum>, typename Sum::options const& how) {
      make = [&, how] { return any(std::in_place_type<Sum>, exec, comm, how, std::string(text)); };
    });
    in.finish([&](detail::option_reader& all) { visit(all, [](auto const&...) {}); });
  } catch (error const& found) {
    terms.note(found.code(), found.sentence());
  }
  terms.check_on(comm);
  return make();
}

} // namespace oktopk

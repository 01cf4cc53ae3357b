// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/format/interop/signs.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace oktopk::interop {

/// What Psyche sends of one tensor, with signs for values.
template <std::signed_integral Index, std::floating_point Value>
struct psyche_result {
  chunk_layout layout;
  std::vector<std::int64_t> shape; ///< of the tensor in chunks: its product is `layout.length`
  std::vector<Index> indices;      ///< ascending
  std::vector<Value> values;
  std::size_t bytes = 0; ///< of this result: the next one begins there
};

namespace detail {

/// Writes numbers as postcard does, the serialisation that Psyche uses: seven bits a byte, the lowest first, the
/// highest bit set in all bytes but the last.
inline void put_number(std::vector<std::byte>& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) {
    out.push_back(static_cast<std::byte>((number & 0x7fU) | 0x80U));
  }
  out.push_back(static_cast<std::byte>(number));
}

/// One tensor: its dimensions, each doubled as signed numbers are; its kind; whether it has a gradient; which of two
/// forms its data has; and the data.
inline void put_tensor(std::vector<std::byte>& out, std::span<std::int64_t const> dimensions, std::uint8_t kind,
                       std::uint8_t form, std::span<std::byte const> data) {
  put_number(out, dimensions.size());
  for (std::int64_t const each : dimensions) {
    put_number(out, static_cast<std::uint64_t>(each) << 1);
  }
  out.insert(out.end(), {std::byte(kind), std::byte(0), std::byte(form)});
  put_number(out, data.size());
  out.insert(out.end(), data.begin(), data.end());
}

/// Reads the same, and never beyond the end.
class postcard_reader {
public:
  explicit postcard_reader(std::span<std::byte const> in) : in_(in) {}

  std::size_t position() const { return at_; }

  std::uint8_t byte() {
    if (at_ == in_.size()) {
      refuse_message("a message of " + std::to_string(in_.size()) + " bytes is cut short");
    }
    return std::to_integer<std::uint8_t>(in_[at_++]);
  }

  /// A number up to `most`.
  std::int64_t number(std::int64_t most, std::string const& what) {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      std::uint64_t const next = byte();
      if (shift == 63 && next > 1) {
        refuse_message(what + " in a message is no number of 64 bits");
      }
      value |= (next & 0x7fU) << shift;
      if (next < 0x80) {
        break;
      }
    }
    if (value > static_cast<std::uint64_t>(most)) {
      refuse_message(what + " in a message is " + std::to_string(value) + ", more than " + std::to_string(most));
    }
    return static_cast<std::int64_t>(value);
  }

  std::span<std::byte const> bytes(std::string const& what) {
    auto const size = static_cast<std::size_t>(number(std::numeric_limits<std::int64_t>::max(), what));
    if (size > in_.size() - at_) {
      refuse_message("a message of " + std::to_string(in_.size()) + " bytes is cut short");
    }
    at_ += size;
    return in_.subspan(at_ - size, size);
  }

  /// Skips the head of a tensor of this kind and form, and gives its last dimension and its data.
  std::span<std::byte const> tensor(std::uint8_t kind, std::uint8_t form, std::string const& what,
                                    std::int64_t& last_dimension) {
    constexpr std::int64_t largest = std::int64_t(1) << 40;
    last_dimension = 0;
    for (std::int64_t left = number(8, "the number of dimensions"); left > 0; --left) {
      std::int64_t const doubled = number(2 * largest, "a dimension");
      if (doubled % 2 != 0) {
        refuse_message("a dimension in a message is negative");
      }
      last_dimension = doubled / 2;
    }
    std::uint8_t const its_kind = byte();
    byte(); // whether it has a gradient
    std::uint8_t const its_form = byte();
    if (its_kind != kind || its_form != form) {
      refuse_message("the " + what + " of a message are of kind " + std::to_string(its_kind) + " and form " +
                     std::to_string(its_form) + ", not " + std::to_string(kind) + " and " + std::to_string(form));
    }
    return bytes("the size of the " + what);
  }

private:
  std::span<std::byte const> in_;
  std::size_t at_ = 0;
};

inline constexpr std::uint8_t psyche_bytes = 0;     // the kind of tensors of bytes
inline constexpr std::uint8_t psyche_booleans = 11; // and of truth values
inline constexpr std::uint8_t psyche_full = 0;      // data as they are
inline constexpr std::uint8_t psyche_one_bit = 1;   // a bit each

} // namespace detail

/// Writes entries as the `SerializedDistroResult` of a tensor with signs for values, as Psyche sends it: the tensors of
/// `write_signs` with their dimensions, then the shape and the size of a chunk, serialised by postcard
/// (shared/network/src/serialized_distro.rs, serializable_tensor.rs and serializable_kind.rs of
/// PsycheFoundation/psyche).
///
/// The tensor is written as one of whole chunks by values in a chunk; both are at most 65,535. Results of several
/// tensors follow each other. Throws `error` as `write_signs` does, and (option_out_of_range) for other lengths. On the
/// host; linear time.
template <std::signed_integral Index, std::floating_point Value>
std::vector<std::byte> write_psyche_result(chunk_layout const& layout, std::span<Index const> indices,
                                           std::span<Value const> values) {
  detail::check_layout(layout, 65535, indices.size());
  if (layout.length % layout.chunk != 0 || layout.whole_chunks() > 65535) {
    detail::refuse("a vector of " + std::to_string(layout.length) + " values is not 0 to 65535 whole chunks of " +
                   std::to_string(layout.chunk));
  }
  std::vector<std::byte> places(static_cast<std::size_t>(bytes_of_places(layout)));
  std::vector<std::byte> signs(static_cast<std::size_t>(bytes_of_signs(layout.entries())));
  write_signs<Index, Value>(layout, indices, values, places, signs);
  std::vector<std::byte> out;
  std::int64_t const in_bytes[] = {layout.whole_chunks(), layout.per_chunk * bytes_of_place(layout.chunk)};
  std::int64_t const in_entries[] = {layout.whole_chunks(), layout.per_chunk};
  detail::put_tensor(out, in_bytes, detail::psyche_bytes, detail::psyche_full, places);
  detail::put_tensor(out, in_entries, detail::psyche_booleans, detail::psyche_one_bit, signs);
  detail::put_number(out, 2);
  detail::put_number(out, static_cast<std::uint64_t>(layout.whole_chunks()));
  detail::put_number(out, static_cast<std::uint64_t>(layout.chunk));
  detail::put_number(out, static_cast<std::uint64_t>(layout.chunk));
  return out;
}

/// Reads the first result of what `write_psyche_result` and Psyche write; a value is `magnitude` or its negative.
///
/// Indices are those of the tensor in chunks, in which Psyche keeps the chunks of a matrix one after the other. Throws
/// `error` (bad_file) for bytes that end too early, numbers that contradict each other, values that are no signs, and
/// as `read_signs` does; (option_out_of_range) where `Index` is too narrow. Takes no more memory than a small multiple
/// of the message. On the host.
template <std::signed_integral Index, std::floating_point Value>
psyche_result<Index, Value> read_psyche_result(std::span<std::byte const> in, Value magnitude) {
  detail::postcard_reader from(in);
  psyche_result<Index, Value> read;
  std::int64_t last_in_bytes = 0;
  auto const places = from.tensor(detail::psyche_bytes, detail::psyche_full, "indices", last_in_bytes);
  auto const signs = from.tensor(detail::psyche_booleans, detail::psyche_one_bit, "values", read.layout.per_chunk);
  std::int64_t product = 1;
  for (std::int64_t left = from.number(8, "the number of dimensions"); left > 0; --left) {
    std::int64_t const each = from.number(65535, "a length of the shape");
    if (each > 0 && product > (std::int64_t(1) << 46) / each) {
      detail::refuse_message("the shape in a message has too many values");
    }
    product *= each;
    read.shape.push_back(each);
  }
  read.layout.length = product;
  read.layout.chunk = from.number(std::int64_t(1) << 32, "the size of a chunk");
  if (read.layout.chunk < 1 || product % read.layout.chunk != 0 || read.layout.per_chunk < 1 ||
      read.layout.per_chunk > read.layout.chunk ||
      last_in_bytes != read.layout.per_chunk * bytes_of_place(read.layout.chunk)) {
    detail::refuse_message("chunks of " + std::to_string(read.layout.chunk) + " values with " +
                           std::to_string(read.layout.per_chunk) + " entries do not fit a shape of " +
                           std::to_string(product) + " values");
  }
  detail::check_bytes(places.size(), bytes_of_places(read.layout), "indices");
  auto const count = static_cast<std::size_t>(read.layout.entries());
  read.indices.resize(count);
  read.values.resize(count);
  read_signs<Index, Value>(read.layout, places, signs, magnitude, read.indices, read.values);
  read.bytes = from.position();
  return read;
}

} // namespace oktopk::interop

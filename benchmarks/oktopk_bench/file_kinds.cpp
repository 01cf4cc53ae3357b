// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "file_kinds.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace oktopk_bench {
namespace {

using namespace std::string_view_literals;

/// Bytes at a place. Of raw gradients one in 2^24 has them by chance, or fewer.
struct kind {
  std::string_view bytes;
  std::string_view name;
  std::size_t at = 0;
};

constexpr kind kinds[] = {
    {"PK\3\4"sv, "a zip archive, as numpy.savez (.npz) and torch.save write it"},
    {"PK\5\6"sv, "an empty zip archive"},
    {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file"},
    {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file", 512}, // behind a block of the user's: MATLAB 7.3, Julia
    {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file", 1024},
    {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file", 2048},
    {"\x0e\x03\x13\x01"sv, "an HDF4 file"},
    {"CDF\1"sv, "a NetCDF file"},
    {"CDF\2"sv, "a NetCDF file"},
    {"CDF\5"sv, "a NetCDF file"},
    {"MATLAB "sv, "a MATLAB file (.mat)"},
    {"ADIOS-BP"sv, "an ADIOS file"},
    {"SIMPLE  ="sv, "a FITS file"},
    {"GRIB"sv, "a GRIB file"},
    {"\0\x12\x7b\x4e"sv, "a vector of PETSc"},
    {"\0\x12\x7b\x50"sv, "a matrix of PETSc"},
    {"# vtk"sv, "a VTK file"},
    {"<VTKFile"sv, "a VTK file"},
    {"<?xml"sv, "XML"},
    {"n+1\0"sv, "a NIfTI file", 344},
    {"DICM"sv, "a DICOM file", 128},
    {"root"sv, "a ROOT file"},
    {"SQLite format 3\0"sv, "an SQLite database"},
    {"\xde\xc0\xef\xbe"sv, "an LMDB database", 16},
    {"ARROW1"sv, "an Arrow or Feather file"},
    {"FEA1"sv, "a Feather file"},
    {"\xff\xff\xff\xff"sv, "an Arrow stream, or begins with a value that is no number"},
    {"PAR1"sv, "a Parquet file"},
    {"Obj\1"sv, "an Avro file"},
    {"ORC"sv, "an ORC file"},
    {"GGUF"sv, "a GGUF file"},
    {"TFL3"sv, "a file of TensorFlow Lite", 4},
    {"\x0a\x23\xd7\xce"sv, "a RecordIO file"},
    {"\x85\xc4\2nd"sv, "MessagePack of a NumPy array"},
    {"\x80\2\x8a\x0a"sv, "a file of torch.save"},
    {"\x80\4\x95"sv, "a pickle of Python"},
    {"\x80\5\x95"sv, "a pickle of Python"},
    {"\x80\2c"sv, "a pickle of Python"},
    {"\x80\2}"sv, "a pickle of Python"},
    {"\x80\2]"sv, "a pickle of Python"},
    {"\x80\3c"sv, "a pickle of Python"},
    {"\x80\3}"sv, "a pickle of Python"},
    {"\x80\3]"sv, "a pickle of Python"},
    {"oktopk0"sv, "a checkpoint of oktopk"},
    {"X\n\0\0\0"sv, "an R object (.rds)"},
    {"RDX"sv, "a workspace of R"},
    {"\x1f\x8b\x08"sv, "compressed by gzip"},
    {"\x1f\x9d\x90"sv, "compressed by compress"},
    {"1AY&SY"sv, "compressed by bzip2", 4},
    {"\x28\xb5\x2f\xfd"sv, "compressed by zstd"},
    {"\x50\x2a\x4d\x18"sv, "compressed by zstd or LZ4"},
    {"\x04\x22\x4d\x18"sv, "compressed by LZ4"},
    {"\x02\x21\x4c\x18"sv, "compressed by LZ4"},
    {"\x89LZO\0"sv, "compressed by lzop"},
    {"\xff\6\0\0sNaPpY"sv, "compressed by Snappy"},
    {"b2frame"sv, "compressed by Blosc", 2},
    {"7z\xbc\xaf"sv, "a 7-Zip archive"},
    {"Rar!"sv, "a RAR archive"},
    {"\xfd"
     "7zXZ"sv,
     "compressed by xz"},
    {"]\0\0"sv, "compressed by lzma"},
    {"ustar"sv, "a tar archive", 257},
    {"\x7f"
     "ELF"sv,
     "a program or a library (ELF)"},
    {"\x89PNG"sv, "a PNG picture"},
    {"\xff\xd8\xff"sv, "a JPEG picture"},
    {"GIF8"sv, "a GIF picture"},
    {"II*\0"sv, "a TIFF picture"},
    {"MM\0*"sv, "a TIFF picture"},
    {"RIFF"sv, "a RIFF file"},
    {"%PDF"sv, "a PDF file"},
    {"\xff\xfe\0\0"sv, "text of UTF-32"},
};

std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t width, bool big_endian = false) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < width; ++i) {
    std::size_t const place = at + (big_endian ? i : width - 1 - i);
    number = number << 8U | (place < bytes.size() ? static_cast<unsigned char>(bytes[place]) : 0xffU);
  }
  return number;
}

/// So many bytes of the file from a place on, fewer at its end.
std::string taken(std::istream& file, std::uint64_t at, std::size_t count) {
  std::string bytes(count, '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(at));
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return bytes;
}

/// Records of Fortran, "unformatted": each has its size in 4 bytes before it and behind it.
bool is_fortran(std::istream& file, std::string_view head, std::uint64_t bytes, bool big_endian) {
  std::uint64_t const size = number_at(head, 0, 4, big_endian);
  return size > 0 && size + 8 <= bytes && taken(file, 4 + size, 4) == head.substr(0, 4);
}

/// Records of TensorFlow: 8 bytes of size, a checksum, the record, a checksum.
bool is_tfrecord(std::istream& file, std::string_view head, std::uint64_t bytes) {
  std::uint64_t const size = number_at(head, 0, 8);
  if (size == 0 || bytes < 16 || size > bytes - 16) {
    return false;
  }
  std::uint64_t const next = size + 16;
  return next == bytes || (bytes - next >= 16 && number_at(taken(file, next, 8), 0, 8) <= bytes - next - 16);
}

/// One object of MessagePack that is the whole file: an array of numbers, bytes, or an extension.
bool is_message_pack(std::string_view head, std::uint64_t bytes) {
  auto const first = number_at(head, 0, 1);
  bool const is_short = first == 0xdc;
  if (is_short || first == 0xdd) {
    std::size_t const begin = is_short ? 3 : 5;
    auto const count = number_at(head, 1, begin - 1, true);
    auto const type = number_at(head, begin, 1);
    return (type == 0xca && begin + 5 * count == bytes) || (type == 0xcb && begin + 9 * count == bytes);
  }
  std::size_t const width = first == 0xc5 || first == 0xc8 ? 2 : first == 0xc6 || first == 0xc9 ? 4 : 0;
  std::uint64_t const type_byte = first == 0xc8 || first == 0xc9 ? 1 : 0;
  return width > 0 && 1 + width + type_byte + number_at(head, 1, width, true) == bytes;
}

/// ONNX: the version of its format, and the name of the program that has written it.
bool is_onnx(std::string_view head) {
  auto const length = static_cast<std::size_t>(number_at(head, 3, 1));
  auto const name = head.substr(std::min<std::size_t>(head.size(), 4), length);
  return number_at(head, 0, 1) == 8 && number_at(head, 1, 1) <= 32 && number_at(head, 2, 1) == 0x12 && length >= 3 &&
         std::all_of(name.begin(), name.end(), [](char each) { return each >= ' ' && each <= '~'; });
}

/// .safetensors: the size of a header, and the header, which is JSON.
bool is_safetensors(std::string_view head, std::uint64_t bytes) {
  return head.substr(std::min<std::size_t>(head.size(), 8)).starts_with("{\"") && number_at(head, 0, 8) < bytes;
}

/// Blosc, as Zarr has it in its chunks: the last of three sizes is that of the file.
bool is_blosc(std::string_view head, std::uint64_t bytes) {
  auto const version = number_at(head, 0, 1);
  return head.size() >= 16 && version >= 1 && version <= 5 && number_at(head, 12, 4) == bytes;
}

/// MATLAB 4: type, rows, columns, whether there is an imaginary part, the length of the name, the name, the values.
bool is_matlab_4(std::string_view head, std::uint64_t bytes) {
  auto const type = number_at(head, 0, 4);
  std::uint64_t const sizes[] = {8, 4, 4, 2, 2, 1};
  auto const rows = number_at(head, 4, 4);
  auto const columns = number_at(head, 8, 4);
  auto const name = number_at(head, 16, 4);
  if (head.size() < 20 || type % 10 != 0 || type / 10 >= std::size(sizes) || std::min({rows, columns, name}) == 0 ||
      std::max({rows, columns, name}) > bytes) {
    return false;
  }
  return 20 + name + rows * columns * sizes[type / 10] * (1 + number_at(head, 12, 4)) == bytes;
}

/// The files of MNIST: two bytes of zero, a type, the number of dimensions, and these.
bool is_idx(std::string_view head, std::uint64_t bytes) {
  auto const type = number_at(head, 2, 1);
  auto const dimensions = static_cast<std::size_t>(number_at(head, 3, 1));
  std::uint64_t size = type == 0x0e ? 8 : type >= 0x0c ? 4 : type == 0x0b ? 2 : 1;
  if (number_at(head, 0, 2) != 0 || type < 8 || type > 0x0e || dimensions < 1 || dimensions > 4) {
    return false;
  }
  for (std::size_t i = 0; i < dimensions && size <= bytes; ++i) {
    size *= number_at(head, 4 + 4 * i, 4, true);
  }
  return 4 + 4 * dimensions + size == bytes;
}

/// The bytes of a character of UTF-8 at the begin of a text; 0 where there is none.
std::size_t character_bytes(std::string_view text) {
  auto const first = static_cast<unsigned char>(text.front());
  std::size_t const count = first < 0x80   ? 1
                            : first < 0xc2 ? 0
                            : first < 0xe0 ? 2
                            : first < 0xf0 ? 3
                            : first < 0xf5 ? 4
                                           : 0;
  for (std::size_t i = 1; i < std::min(count, text.size()); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80) {
      return 0;
    }
  }
  return count;
}

/// Text has no control characters, and is UTF-8, or ASCII but for a few letters.
bool is_text(std::string_view head) {
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) { // UTF-16
    std::size_t const high = head.starts_with("\xff") ? 1U : 0U;
    std::size_t zeros = 0;
    for (std::size_t i = 2; i + 1 < head.size(); i += 2) {
      zeros += head[i + high] == '\0' ? 1U : 0U;
    }
    return head.size() >= 8 && 2 * (zeros + 1) * 10 >= head.size() * 9;
  }
  auto const is_control = [](char each) {
    return (static_cast<unsigned char>(each) < ' ' && each != '\n' && each != '\r' && each != '\t' && each != '\f') ||
           each == '\x7f';
  };
  if (head.size() < 32 || std::any_of(head.begin(), head.end(), is_control)) {
    return false;
  }
  auto const ascii = std::count_if(head.begin(), head.end(), [](char each) { return (each & '\x80') == 0; });
  if (static_cast<std::size_t>(ascii) * 10 >= head.size() * 9) {
    return true;
  }
  while (!head.empty()) {
    std::size_t const count = character_bytes(head);
    if (count == 0) {
      return false;
    }
    head.remove_prefix(std::min(count, head.size())); // the last one may be cut
  }
  return true;
}

} // namespace

std::string head_of(std::istream& file) {
  return taken(file, 0, 65536);
}

std::string kind_of_file(std::istream& file, std::int64_t bytes) {
  std::string const all = head_of(file);
  std::string_view const head = all;
  for (kind const& each : kinds) {
    if (head.substr(std::min(head.size(), each.at)).starts_with(each.bytes)) {
      return std::string(each.name);
    }
  }
  auto const size = static_cast<std::uint64_t>(bytes);
  if (is_safetensors(head, size)) {
    return "a safetensors file";
  }
  if (is_text(head)) {
    return "text";
  }
  if (is_fortran(file, head, size, false) || is_fortran(file, head, size, true)) {
    return "unformatted records of Fortran, with the size of each around it: access=\"stream\" writes raw values";
  }
  if (is_tfrecord(file, head, size)) {
    return "a TFRecord file";
  }
  if (is_blosc(head, size)) {
    return "compressed by Blosc";
  }
  if (is_message_pack(head, size)) {
    return "MessagePack";
  }
  if (is_onnx(head)) {
    return "an ONNX file";
  }
  if (is_matlab_4(head, size)) {
    return "a MATLAB file (.mat)";
  }
  return is_idx(head, size) ? "an idx file, as those of MNIST" : "";
}

/// Where float16 and bfloat16 are below 2, the lower half of each word has its second bit clear; in float32 that is a bit
/// of the mantissa, before others that are set. Of float64 every second word is the lower half of a value: as a float32 it
/// is often huge, while the upper half never is. Whole numbers are denormal. What is compressed, or has its bytes in the
/// other order, is huge and tiny by turns.
std::string_view other_type_of_values(std::string_view head) {
  std::int64_t halves = 0;
  std::int64_t large_halves = 0;
  std::int64_t huge[2] = {0, 0};
  std::int64_t tiny[2] = {0, 0};
  std::int64_t denormal = 0;
  std::int64_t zeros = 0;
  auto const words = static_cast<std::int64_t>(head.size() / 4);
  for (std::int64_t i = 0; i < words; ++i) {
    auto const word = static_cast<std::uint32_t>(number_at(head, static_cast<std::size_t>(4 * i), 4));
    auto const exponent = word >> 23U & 0xffU;
    halves += (word & 0x3fffU) != 0 ? 1 : 0;
    large_halves += (word & 0x4000U) != 0 ? 1 : 0;
    huge[i % 2] += exponent >= 160 ? 1 : 0;               // 2^33
    tiny[i % 2] += exponent < 64 && exponent > 0 ? 1 : 0; // 2^-63
    denormal += exponent == 0 && (word & 0x7fffffU) != 0 ? 1 : 0;
    zeros += (word & 0x7fffffffU) == 0 ? 1 : 0;
  }
  if (words < 64) {
    return "";
  }
  if (huge[1] == 0 && huge[0] >= words / 16) {
    return "float64";
  }
  if (denormal >= 64 && denormal == words - zeros) {
    return "whole numbers";
  }
  if (std::min({huge[0], huge[1], tiny[0], tiny[1]}) >= words / 32) {
    return "big-endian or compressed data";
  }
  return halves >= 64 && large_halves == 0 ? "float16 or bfloat16" : "";
}

} // namespace oktopk_bench

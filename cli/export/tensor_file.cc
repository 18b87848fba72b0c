#include "cli/export/tensor_file.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cli/export/export_source.h"
#include "cli/export/pickle.h"
#include "cli/tensors/npy.h"
#include "format/trace/zip_archive.h"

namespace deja::cli {
namespace {

// By the numbers of common/data_types.def.
constexpr size_t kTypes = 12;

std::string_view CharsOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Status WriteFile(const std::string& path, std::string_view header, std::string_view body) {
  DEJA_ASSIGN_OR_RETURN(auto file, ExportFile::Create(path));
  file.Write(header);
  file.Write(body);
  return file.Finish();
}

Status WriteNpy(const TensorContents& tensor, const std::string& path) {
  return WriteFile(path, NpyHeader(tensor.dtype, tensor.count), CharsOf(tensor.bytes));
}

Status WriteSafetensors(const TensorContents& tensor, const std::string& path) {
  constexpr std::array<const char*, kTypes> kNames = {
      "I8", "U8", "I32", "U32", "I64", "U64", "F16", "F32", "F64", "BF16", "F8_E4M3", "F8_E5M2"};
  constexpr size_t kAlignment = 8;
  const nlohmann::json header = {{tensor.name,
                                  {{"dtype", tensor.dtype < kTypes ? kNames[tensor.dtype] : "U8"},
                                   {"shape", {tensor.count}},
                                   {"data_offsets", {size_t{0}, tensor.bytes.size()}}}}};
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  std::string before;
  for (int shift = 0; shift < 64; shift += 8)
    before += static_cast<char>(uint64_t{text.size()} >> shift);
  return WriteFile(path, before + text, CharsOf(tensor.bytes));
}

// What torch.save pickles of a tensor whose storage is the archive's "data/0".
std::string TorchPickle(const TensorContents& tensor) {
  // Types with a storage class of their own; the others came later, as a dtype beside the bytes.
  constexpr std::array<const char*, kTypes> kStorages = {"CharStorage",
                                                         "ByteStorage",
                                                         "IntStorage",
                                                         "",
                                                         "LongStorage",
                                                         "",
                                                         "HalfStorage",
                                                         "FloatStorage",
                                                         "DoubleStorage",
                                                         "BFloat16Storage",
                                                         "",
                                                         ""};
  constexpr std::array<const char*, kTypes> kNames = {
      "", "", "", "uint32", "", "uint64", "", "", "", "", "float8_e4m3fn", "float8_e5m2"};
  const uint32_t dtype = tensor.dtype < kTypes ? tensor.dtype : 1;
  const bool is_typed = *kStorages[dtype] != '\0';
  Pickle pickle;
  pickle.Global("torch._utils", is_typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  pickle.BeginTuple();
  pickle.BeginTuple();
  pickle.Text("storage");
  if (is_typed)
    pickle.Global("torch", kStorages[dtype]);
  else
    pickle.Global("torch.storage", "UntypedStorage");
  pickle.Text("0");
  pickle.Text("cpu");
  pickle.Number(static_cast<int64_t>(is_typed ? tensor.count : tensor.bytes.size()));
  pickle.EndTuple();
  pickle.PersistentId();
  pickle.Number(0);                                            // offset
  for (const uint64_t number : {tensor.count, uint64_t{1}}) {  // size, stride
    pickle.BeginTuple();
    pickle.Number(static_cast<int64_t>(number));
    pickle.EndTuple();
  }
  pickle.Bool(false);  // requires_grad
  pickle.Global("collections", "OrderedDict");
  pickle.BeginTuple();
  pickle.EndTuple();
  pickle.Call();
  if (!is_typed) pickle.Global("torch", kNames[dtype]);
  pickle.EndTuple();
  pickle.Call();
  pickle.Stop();
  return pickle.Take();
}

Status AddEntry(zip_t* archive, const char* name, std::string_view bytes, size_t extra) {
  zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
  const zip_int64_t index = source == nullptr ? -1 : zip_file_add(archive, name, source, 0);
  if (index < 0) {
    zip_source_free(source);
    return Fail(ErrorCode::kIo, fmt::format("{}: {}", name, format::ZipError(archive)));
  }
  const auto entry = static_cast<zip_uint64_t>(index);
  zip_set_file_compression(archive, entry, ZIP_CM_STORE, 0);
  // The same trace gives the same file.
  constexpr zip_uint16_t kFirstDay = 0x21;
  zip_file_set_dostime(archive, entry, 0, kFirstDay, 0);
  // torch fills up with a field of this number, too.
  constexpr zip_uint16_t kPadding = 0x4246;
  const std::string filler(extra, 'Z');
  if (extra != 0)
    zip_file_extra_field_set(archive, entry, kPadding, ZIP_EXTRA_FIELD_NEW,
                             reinterpret_cast<const zip_uint8_t*>(filler.data()),
                             static_cast<zip_uint16_t>(extra), ZIP_FL_LOCAL);
  return {};
}

Status WritePt(const TensorContents& tensor, const std::string& path) {
  DEJA_ASSIGN_OR_RETURN(format::Archive archive,
                        format::OpenArchive(path, ZIP_CREATE | ZIP_TRUNCATE));
  // The elements come first, so that they begin at a multiple of 64 bytes, as mapping them needs.
  constexpr const char* kData = "archive/data/0";
  constexpr size_t kAlignment = 64;
  constexpr size_t kHeader = 30 + 14 + 4;  // of an entry, with its name and the field's own header
  static_assert(std::string_view(kData).size() == 14);
  const std::string pickle = TorchPickle(tensor);
  DEJA_RETURN_IF_ERROR(AddEntry(archive.get(), kData, CharsOf(tensor.bytes), kAlignment - kHeader));
  DEJA_RETURN_IF_ERROR(AddEntry(archive.get(), "archive/data.pkl", pickle, 0));
  DEJA_RETURN_IF_ERROR(AddEntry(archive.get(), "archive/byteorder", "little", 0));
  DEJA_RETURN_IF_ERROR(AddEntry(archive.get(), "archive/version", "3\n", 0));
  if (zip_close(archive.get()) != 0)
    return Fail(ErrorCode::kIo,
                fmt::format("writing {}: {}", path, format::ZipError(archive.get())));
  (void)archive.release();  // closing has freed it
  return {};
}

}  // namespace

std::span<const TensorFormat> TensorFormats() {
  static constexpr TensorFormat kFormats[] = {
      {"npy", ".npy", WriteNpy},
      {"safetensors", ".safetensors", WriteSafetensors},
      {"pt", ".pt", WritePt},
  };
  return kFormats;
}

const TensorFormat* TensorFormatNamed(std::string_view name) {
  const auto formats = TensorFormats();
  const auto it = std::find_if(formats.begin(), formats.end(),
                               [&](const TensorFormat& format) { return name == format.name; });
  return it == formats.end() ? nullptr : &*it;
}

const TensorFormat* TensorFormatOfFile(std::string_view path) {
  const auto formats = TensorFormats();
  const auto it = std::find_if(formats.begin(), formats.end(), [&](const TensorFormat& format) {
    return path.ends_with(format.ending);
  });
  return it == formats.end() ? nullptr : &*it;
}

}  // namespace deja::cli

#include "preload/stack/frame_rules.h"

#include <cstddef>
#include <cstring>

namespace deja::preload {
namespace {

constexpr int kCfaBits = 26;
constexpr int kFpBits = 16;

bool Fits(int32_t offset, int bits) {
  int32_t units = offset / 8;
  return offset % 8 == 0 && units >= -(1 << (bits - 1)) && units < (1 << (bits - 1));
}

int32_t SignExtended(uint64_t value, int bits) {
  return static_cast<int32_t>(static_cast<int64_t>(value << (64 - bits)) >> (64 - bits)) * 8;
}

}  // namespace

uint64_t FrameRule::Pack() const {
  if (!Fits(cfa_offset, kCfaBits) || !Fits(fp_offset, kFpBits)) {
    FrameRule complex;
    complex.kind = FrameKind::kComplex;
    complex.module = module;
    return complex.Pack();
  }
  uint64_t cfa = static_cast<uint64_t>(cfa_offset / 8) & ((1u << kCfaBits) - 1);
  uint64_t fp = static_cast<uint64_t>(fp_offset / 8) & ((1u << kFpBits) - 1);
  return static_cast<uint64_t>(kind) | static_cast<uint64_t>(cfa_from) << 2 |
         static_cast<uint64_t>(fp_from) << 4 | static_cast<uint64_t>(module) << 6 | fp << 20 |
         cfa << 36;
}

FrameRule FrameRule::Unpack(uint64_t packed) {
  FrameRule rule;
  rule.kind = static_cast<FrameKind>(packed & 3);
  rule.cfa_from = static_cast<CfaFrom>(packed >> 2 & 3);
  rule.fp_from = static_cast<FpFrom>(packed >> 4 & 3);
  rule.module = packed >> 6 & 0x3fff;
  rule.fp_offset = SignExtended(packed >> 20 & ((1u << kFpBits) - 1), kFpBits);
  rule.cfa_offset = SignExtended(packed >> 36 & ((1u << kCfaBits) - 1), kCfaBits);
  return rule;
}

#if defined(__x86_64__)
namespace {

constexpr uint64_t kRegFp = 6;  // rbp
constexpr uint64_t kRegSp = 7;  // rsp
constexpr uint64_t kRegRa = 16;

// DW_EH_PE_*: how pointers are encoded in .eh_frame.
constexpr uint8_t kEncodingData4 = 0x0b;  // sdata4
constexpr uint8_t kEncodingPcRel = 0x10;
constexpr uint8_t kEncodingDataRel = 0x30;
constexpr uint8_t kEncodingUnsigned4 = 0x03;

template <typename T>
T LoadAt(const uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// A cursor over DWARF bytes that never leaves its range.
class Bytes {
 public:
  Bytes(const uint8_t* begin, const uint8_t* end) : p_(begin), end_(end) {}
  [[nodiscard]] bool empty() const { return p_ >= end_; }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] const uint8_t* at() const { return p_; }
  [[nodiscard]] const uint8_t* end() const { return end_; }

  template <typename T>
  T Fixed() {
    if (!Has(sizeof(T))) return T{};
    T v = LoadAt<T>(p_);
    p_ += sizeof(T);
    return v;
  }
  uint64_t Unsigned() {
    uint64_t value = 0;
    for (int shift = 0; Has(1); shift += 7) {
      uint8_t byte = *p_++;
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) break;
    }
    return value;
  }
  int64_t Signed() {
    uint64_t value = 0;
    int shift = 0;
    uint8_t byte = 0;
    while (Has(1)) {
      byte = *p_++;
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      shift += 7;
      if ((byte & 0x80) == 0) break;
    }
    if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(value);
  }
  Bytes Block(uint64_t size) {
    if (!Has(size)) return Bytes(end_, end_);
    Bytes block(p_, p_ + size);
    p_ += size;
    return block;
  }

 private:
  bool Has(uint64_t n) {
    if (static_cast<uint64_t>(end_ - p_) < n) {
      ok_ = false;
      p_ = end_;
    }
    return ok_;
  }
  const uint8_t* p_;
  const uint8_t* end_;
  bool ok_ = true;
};

struct Cie {
  uint64_t code_align = 1;
  int64_t data_align = 1;
  bool signal_frame = false;
  bool has_augmentation = false;
  uint8_t pointer_encoding = 0;
  Bytes instructions{nullptr, nullptr};
};

bool ParseCie(const uint8_t* p, Cie& cie) {
  auto length = LoadAt<uint32_t>(p);
  if (length == 0 || length == 0xffffffff) return false;
  Bytes in(p + 4, p + 4 + length);
  if (in.Fixed<uint32_t>() != 0) return false;
  uint8_t version = in.Fixed<uint8_t>();
  if (version != 1 && version != 3) return false;
  const char* augmentation = reinterpret_cast<const char*>(in.at());
  while (in.ok() && in.Fixed<uint8_t>() != 0) {
  }
  cie.code_align = in.Unsigned();
  cie.data_align = in.Signed();
  uint64_t ra = version == 1 ? in.Fixed<uint8_t>() : in.Unsigned();
  if (!in.ok() || ra != kRegRa) return false;
  if (*augmentation != 0 && *augmentation != 'z') return false;
  if (*augmentation == 'z') {
    cie.has_augmentation = true;
    Bytes data = in.Block(in.Unsigned());
    for (const char* a = augmentation + 1; *a != 0; ++a) {
      if (*a == 'R') {
        cie.pointer_encoding = data.Fixed<uint8_t>();
      } else if (*a == 'L') {
        data.Fixed<uint8_t>();
      } else if (*a == 'P') {
        uint8_t encoding = data.Fixed<uint8_t>() & 0x0f;
        if (encoding == 0 || encoding == 4 || encoding == 12) {
          data.Fixed<uint64_t>();
        } else if (encoding == 3 || encoding == 11) {
          data.Fixed<uint32_t>();
        } else {
          return false;
        }
      } else if (*a == 'S') {
        cie.signal_frame = true;
      } else {
        return false;
      }
    }
    if (!data.ok()) return false;
  }
  cie.instructions = Bytes(in.at(), in.end());
  return in.ok();
}

struct Fde {
  uint64_t begin = 0;
  uint64_t size = 0;
  Cie cie;
  Bytes instructions{nullptr, nullptr};
};

bool ParseFde(const uint8_t* p, Fde& fde) {
  auto length = LoadAt<uint32_t>(p);
  if (length == 0 || length == 0xffffffff) return false;
  Bytes in(p + 4, p + 4 + length);
  auto cie_offset = in.Fixed<uint32_t>();
  if (cie_offset == 0 || !ParseCie(p + 4 - cie_offset, fde.cie)) return false;
  const uint8_t* field = in.at();
  switch (fde.cie.pointer_encoding) {
    case kEncodingPcRel | kEncodingData4:
      fde.begin = reinterpret_cast<uint64_t>(field) +
                  static_cast<uint64_t>(static_cast<int64_t>(in.Fixed<int32_t>()));
      fde.size = in.Fixed<uint32_t>();
      break;
    case kEncodingPcRel | 0x0c:  // sdata8, large code model
      fde.begin = reinterpret_cast<uint64_t>(field) + in.Fixed<uint64_t>();
      fde.size = in.Fixed<uint64_t>();
      break;
    case 0:
      fde.begin = in.Fixed<uint64_t>();
      fde.size = in.Fixed<uint64_t>();
      break;
    default:
      return false;
  }
  if (fde.cie.has_augmentation) in.Block(in.Unsigned());
  fde.instructions = Bytes(in.at(), in.end());
  return in.ok();
}

enum class Found { kYes, kNone, kUnknownFormat };

// Binary search in the table of .eh_frame_hdr.
Found FindFde(const Module& module, uint64_t pc, Fde& fde) {
  if (module.eh_frame_hdr == 0) return Found::kNone;
  const auto* header = reinterpret_cast<const uint8_t*>(module.eh_frame_hdr);
  if (header[0] != 1 || header[2] != kEncodingUnsigned4 ||
      header[3] != (kEncodingDataRel | kEncodingData4))
    return Found::kUnknownFormat;
  uint32_t pointer_size;
  switch (header[1] & 0x0f) {
    case 3:
    case 11:
      pointer_size = 4;
      break;
    case 0:
    case 4:
    case 12:
      pointer_size = 8;
      break;
    default:
      return Found::kUnknownFormat;
  }
  auto count = LoadAt<uint32_t>(header + 4 + pointer_size);
  const uint8_t* table = header + 8 + pointer_size;
  auto begin_of = [&](uint32_t i) {
    return module.eh_frame_hdr +
           static_cast<uint64_t>(static_cast<int64_t>(LoadAt<int32_t>(table + size_t{i} * 8)));
  };
  uint32_t low = 0;
  uint32_t high = count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (begin_of(middle) <= pc) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return Found::kNone;
  const uint8_t* at = header + LoadAt<int32_t>(table + size_t{low - 1} * 8 + 4);
  if (!ParseFde(at, fde)) return Found::kUnknownFormat;
  return pc >= fde.begin && pc - fde.begin < fde.size ? Found::kYes : Found::kNone;
}

enum class Where : uint8_t { kSame, kAtCfa, kAtFp, kUndefined, kOther };

struct Row {
  bool cfa_known = false;
  CfaFrom cfa_from = CfaFrom::kSp;
  bool cfa_other = false;  // from another register or by an expression that is not understood
  int64_t cfa_offset = 0;
  Where fp = Where::kSame;
  int64_t fp_offset = 0;
  Where ra = Where::kSame;
  int64_t ra_offset = 0;
};

class Interpreter {
 public:
  Interpreter(const Cie& cie, uint64_t begin, uint64_t pc) : cie_(cie), location_(begin), pc_(pc) {}

  // False if there is something in it that is not understood.
  bool Run(Bytes in, bool initial) {
    while (!in.empty()) {
      uint8_t op = in.Fixed<uint8_t>();
      if (!Step(op, in, initial)) return false;
      if (!in.ok()) return false;
      if (location_ > pc_) break;
      if (!initial) final_ = row_;
    }
    if (initial) initial_row_ = final_ = row_;
    return true;
  }

  [[nodiscard]] const Row& row() const { return final_; }

 private:
  void Advance(uint64_t delta) { location_ += delta * cie_.code_align; }

  void SetRule(uint64_t reg, Where where, int64_t offset) {
    if (reg == kRegFp) {
      row_.fp = where;
      row_.fp_offset = offset;
    } else if (reg == kRegRa) {
      row_.ra = where;
      row_.ra_offset = offset;
    }
  }
  void Restore(uint64_t reg) {
    if (reg == kRegFp) {
      row_.fp = initial_row_.fp;
      row_.fp_offset = initial_row_.fp_offset;
    } else if (reg == kRegRa) {
      row_.ra = initial_row_.ra;
      row_.ra_offset = initial_row_.ra_offset;
    }
  }
  void SetCfaRegister(uint64_t reg) {
    row_.cfa_known = true;
    row_.cfa_other = reg != kRegSp && reg != kRegFp;
    row_.cfa_from = reg == kRegFp ? CfaFrom::kFp : CfaFrom::kSp;
  }
  // DW_OP_breg6 x; DW_OP_deref: functions that realign their stack keep their CFA like this.
  void SetCfaExpression(Bytes block) {
    row_.cfa_known = true;
    row_.cfa_other = true;
    if (block.Fixed<uint8_t>() != 0x76) return;
    int64_t offset = block.Signed();
    if (block.Fixed<uint8_t>() != 0x06 || !block.ok() || !block.empty()) return;
    row_.cfa_other = false;
    row_.cfa_from = CfaFrom::kAtFp;
    row_.cfa_offset = offset;
  }
  void SetExpression(uint64_t reg, Bytes block) {
    if (block.Fixed<uint8_t>() == 0x76) {
      int64_t offset = block.Signed();
      if (block.ok() && block.empty()) return SetRule(reg, Where::kAtFp, offset);
    }
    SetRule(reg, Where::kOther, 0);
  }

  bool Step(uint8_t op, Bytes& in, bool initial) {
    uint64_t low = op & 0x3f;
    switch (op >> 6) {
      case 1:
        Advance(low);
        return true;
      case 2:
        SetRule(low, Where::kAtCfa, static_cast<int64_t>(in.Unsigned()) * cie_.data_align);
        return true;
      case 3:
        Restore(low);
        return true;
      default:
        break;
    }
    switch (op) {
      case 0x00:
        return true;  // nop
      case 0x01:
        return false;  // set_loc
      case 0x02:
        Advance(in.Fixed<uint8_t>());
        return true;
      case 0x03:
        Advance(in.Fixed<uint16_t>());
        return true;
      case 0x04:
        Advance(in.Fixed<uint32_t>());
        return true;
      case 0x05: {  // offset_extended
        uint64_t reg = in.Unsigned();
        SetRule(reg, Where::kAtCfa, static_cast<int64_t>(in.Unsigned()) * cie_.data_align);
        return true;
      }
      case 0x06:
        Restore(in.Unsigned());
        return true;
      case 0x07:
        SetRule(in.Unsigned(), Where::kUndefined, 0);
        return true;
      case 0x08:
        SetRule(in.Unsigned(), Where::kSame, 0);
        return true;
      case 0x09: {  // register
        uint64_t reg = in.Unsigned();
        in.Unsigned();
        SetRule(reg, Where::kOther, 0);
        return true;
      }
      case 0x0a:  // remember_state
        if (depth_ == kMaxDepth) return false;
        saved_[depth_++] = row_;
        return true;
      case 0x0b:  // restore_state
        if (depth_ == 0) return false;
        row_ = saved_[--depth_];
        return true;
      case 0x0c:  // def_cfa
        SetCfaRegister(in.Unsigned());
        row_.cfa_offset = static_cast<int64_t>(in.Unsigned());
        return true;
      case 0x0d:
        SetCfaRegister(in.Unsigned());
        return true;
      case 0x0e:
        row_.cfa_offset = static_cast<int64_t>(in.Unsigned());
        return true;
      case 0x0f:
        SetCfaExpression(in.Block(in.Unsigned()));
        return true;
      case 0x10: {  // expression
        uint64_t reg = in.Unsigned();
        SetExpression(reg, in.Block(in.Unsigned()));
        return true;
      }
      case 0x11: {  // offset_extended_sf
        uint64_t reg = in.Unsigned();
        SetRule(reg, Where::kAtCfa, in.Signed() * cie_.data_align);
        return true;
      }
      case 0x12:  // def_cfa_sf
        SetCfaRegister(in.Unsigned());
        row_.cfa_offset = in.Signed() * cie_.data_align;
        return true;
      case 0x13:
        row_.cfa_offset = in.Signed() * cie_.data_align;
        return true;
      case 0x16: {  // val_expression
        uint64_t reg = in.Unsigned();
        in.Block(in.Unsigned());
        SetRule(reg, Where::kOther, 0);
        return true;
      }
      case 0x2e:
        in.Unsigned();
        return true;  // GNU_args_size
      default:
        (void)initial;
        return false;
    }
  }

  static constexpr int kMaxDepth = 8;
  const Cie& cie_;
  uint64_t location_;
  uint64_t pc_;
  Row row_;
  Row final_;
  Row initial_row_;
  Row saved_[kMaxDepth];
  int depth_ = 0;
};

bool IsSmall(int64_t offset) {
  return offset > -(1 << 28) && offset < (1 << 28);
}

FrameRule RuleOf(const Row& row) {
  FrameRule rule;
  rule.kind = FrameKind::kComplex;
  if (row.ra == Where::kUndefined) {
    rule.kind = FrameKind::kEnd;
    return rule;
  }
  if (!row.cfa_known || row.cfa_other || row.ra != Where::kAtCfa || row.ra_offset != -8)
    return rule;
  if (!IsSmall(row.cfa_offset) || !IsSmall(row.fp_offset)) return rule;
  switch (row.fp) {
    case Where::kSame:
      rule.fp_from = FpFrom::kSame;
      break;
    case Where::kAtCfa:
      rule.fp_from = FpFrom::kAtCfa;
      break;
    case Where::kAtFp:
      rule.fp_from = FpFrom::kAtFp;
      break;
    default:
      return rule;
  }
  rule.kind = FrameKind::kNormal;
  rule.cfa_from = row.cfa_from;
  rule.cfa_offset = static_cast<int32_t>(row.cfa_offset);
  rule.fp_offset = static_cast<int32_t>(row.fp == Where::kSame ? 0 : row.fp_offset);
  return rule;
}

}  // namespace

FrameRule FindFrameRule(const Module& module, uint64_t pc) {
  FrameRule rule;
  rule.module = module.number;
  Fde fde;
  switch (FindFde(module, pc, fde)) {
    case Found::kNone:
      return rule;
    case Found::kUnknownFormat:
      rule.kind = FrameKind::kComplex;
      return rule;
    case Found::kYes:
      break;
  }
  if (fde.cie.signal_frame) {
    rule.kind = FrameKind::kSignal;
    return rule;
  }
  Interpreter interpreter(fde.cie, fde.begin, pc);
  rule.kind = FrameKind::kComplex;
  if (!interpreter.Run(fde.cie.instructions, true)) return rule;
  if (!interpreter.Run(fde.instructions, false)) return rule;
  rule = RuleOf(interpreter.row());
  rule.module = module.number;
  return rule;
}

#else

FrameRule FindFrameRule(const Module& module, uint64_t) {
  FrameRule rule;
  rule.kind = FrameKind::kComplex;
  rule.module = module.number;
  return rule;
}

#endif

}  // namespace deja::preload

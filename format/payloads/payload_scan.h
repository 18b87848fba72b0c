// What a payload file holds, found by reading all of it: for folders that have no index, or a wrong
// one.
//
// Any thread.
#ifndef DEJA_FORMAT_PAYLOADS_PAYLOAD_SCAN_H_
#define DEJA_FORMAT_PAYLOADS_PAYLOAD_SCAN_H_

#include <cstdint>
#include <functional>

#include "common/os/file.h"
#include "format/wire/frame_reader.h"
#include "format/wire/messages.h"

namespace deja::format {

struct PayloadScan {
  // A chunk and where its frame begins; false: it contradicts others of its payload.
  std::function<bool(const PayloadChunk&, uint64_t)> chunk;
  // What could not be used, with its reason.
  std::function<void(const FrameResult&)> damage;
};

// Chunks that build on a damaged one are left out. False: it is no payload file.
bool ScanPayloadFile(const ReadFile& file, const PayloadScan& scan);

}  // namespace deja::format

#endif  // DEJA_FORMAT_PAYLOADS_PAYLOAD_SCAN_H_

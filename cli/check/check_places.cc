#include "cli/check/check_places.h"

#include <filesystem>

#include "cli/events/rank_summary.h"
#include "cli/events/short_name.h"

namespace deja::cli {
namespace {

// Templates of the standard library are compiled into the program.
bool IsSystemHeader(const std::string& file) {
  return file.rfind("/usr/include/", 0) == 0 || file.rfind("/usr/lib/", 0) == 0;
}

check::Place PlaceOf(const SourceFrame& frame) {
  check::Place place;
  place.line = frame.line;
  place.function = frame.python ? frame.function : ShortName(frame.function);
  if (!frame.file.empty()) {
    place.file = std::filesystem::path(frame.file).filename().string();
  } else {
    // Without debug information: the function, or where in the module.
    place.file.clear();
    if (place.function.empty()) place.function = frame.Place();
  }
  return place;
}

}  // namespace

const std::vector<check::Place>& CheckPlaces::PlacesOf(const check::CodeAddress& address,
                                                       bool is_return) {
  const auto [it, added] =
      known_.try_emplace({address.module, address.build_id, address.offset, is_return});
  if (!added) return it->second;
  for (const SourceFrame& frame :
       symbolizer_.Resolve(address.module, address.build_id, address.offset, is_return))
    if (IsProgramFrame(frame) && !IsSystemHeader(frame.file) && frame.function != "_start")
      it->second.push_back(PlaceOf(frame));
  return it->second;
}

check::Site CheckPlaces::Find(const std::vector<check::CodeAddress>& stack, bool first_is_pc) {
  const std::lock_guard hold(mutex_);
  check::Site site;
  for (size_t i = 0; i < stack.size(); ++i) {
    for (const check::Place& place : PlacesOf(stack[i], i > 0 || !first_is_pc)) {
      if (site.size() == kMostPlaces) return site;
      site.push_back(place);
    }
  }
  return site;
}

}  // namespace deja::cli

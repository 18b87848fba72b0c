// Sites: the places in the program's source that a rank's recording names, each with one number.
//
// One thread. The finder and the list of sites are the caller's and outlive it.
#ifndef DEJA_CHECK_EVIDENCE_SITES_H_
#define DEJA_CHECK_EVIDENCE_SITES_H_

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "check/evidence/place_finder.h"
#include "check/evidence/summary.h"
#include "format/wire/messages.h"

namespace deja::check {

class Sites {
 public:
  Sites(PlaceFinder& places, std::vector<Site>& sites) : places_(places), sites_(sites) {}

  void AddModule(const format::ModuleLoaded& module) {
    modules_[module.module] = {std::string(module.path), std::string(module.build_id)};
  }
  void AddStack(const format::StackDefined& stack) {
    stacks_[stack.stack].assign(stack.frames.begin(), stack.frames.end());
  }

  uint32_t Number(const Site& site) {
    if (site.empty()) return kNoSite;
    const auto [it, added] = numbers_.try_emplace(site, static_cast<uint32_t>(sites_.size()));
    if (added) sites_.push_back(site);
    return it->second;
  }

  // The site of a recorded stack; kNoSite: the recording does not have it.
  uint32_t OfStack(uint32_t stack) {
    if (stack == 0) return kNoSite;
    const auto known = of_stacks_.find(stack);
    if (known != of_stacks_.end()) return known->second;
    const auto found = stacks_.find(stack);
    if (found == stacks_.end()) return kNoSite;
    return of_stacks_[stack] = OfFrames(found->second, false);
  }

  // The site of a stack that a signal's handler took; of `frames` if there is no such stack.
  uint32_t OfCrash(uint32_t stack, const std::vector<format::StackFrame>& frames) {
    const auto found = stacks_.find(stack);
    return OfFrames(found == stacks_.end() ? frames : found->second, true);
  }

 private:
  struct Module {
    std::string path;
    std::string build_id;
  };

  uint32_t OfFrames(const std::vector<format::StackFrame>& frames, bool first_is_pc) {
    std::vector<CodeAddress> stack;
    for (const format::StackFrame& frame : frames) {
      const auto module = modules_.find(frame.module);
      if (module != modules_.end())
        stack.push_back({module->second.path, module->second.build_id, frame.offset});
    }
    return Number(places_.Find(stack, first_is_pc));
  }

  PlaceFinder& places_;
  std::vector<Site>& sites_;
  std::map<uint32_t, Module> modules_;
  std::map<uint32_t, std::vector<format::StackFrame>> stacks_;
  std::unordered_map<uint32_t, uint32_t> of_stacks_;
  std::map<Site, uint32_t> numbers_;
};

}  // namespace deja::check

#endif  // DEJA_CHECK_EVIDENCE_SITES_H_

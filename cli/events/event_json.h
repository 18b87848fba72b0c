// How events are shown as JSON: what `deja show --json` prints.
//
// Pure functions; views of the event must be alive.
#ifndef DEJA_CLI_EVENTS_EVENT_JSON_H_
#define DEJA_CLI_EVENTS_EVENT_JSON_H_

#include <nlohmann/json.hpp>

#include "cli/events/rank_summary.h"
#include "format/wire/messages.h"

namespace deja::cli {

nlohmann::json TensorToJson(const format::Tensor& tensor);
nlohmann::json EventToJson(const format::Event& event, const RankSummary& summary);

}  // namespace deja::cli

#endif  // DEJA_CLI_EVENTS_EVENT_JSON_H_

#include "cli/events/event_json.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <variant>

#include "api/find_api.h"
#include "cli/events/event_fields.h"
#include "cli/events/event_words.h"
#include "cli/programs/executed_program.h"
#include "common/text/hex_text.h"
#include "digest/elements.h"
#include "format/reader/file_ranges.h"
#include "format/tail/clock_run.h"
#include "format/tail/lock_reading.h"

namespace deja::cli {
namespace {

using format::Event;

nlohmann::json TensorsToJson(const InlineVec<format::Tensor, format::kMaxCallTensors>& tensors) {
  nlohmann::json list = nlohmann::json::array();
  for (const format::Tensor& tensor : tensors) list.push_back(TensorToJson(tensor));
  return list;
}

struct JsonWriter {
  const RankSummary& summary;
  nlohmann::json& json;

  void operator()(std::monostate) const {}
  // A kind whose JSON has no names of its own.
  template <typename T>
  void operator()(const T& m) const {
    FieldsToJson(m, json);
  }
  void operator()(const format::CallEnter& m) const {
    json["call"] = summary.ApiName(m.api);
    if (m.comm != 0) json["comm"] = m.comm - 1;
    if (m.comm_seq != 0) json["seq_on_comm"] = m.comm_seq;
    if (m.group_depth != 0) json["group_depth"] = m.group_depth;
    const api::ApiInfo* info = api::FindApi(m.api);
    for (uint32_t i = 0; i < m.args.size(); ++i) {
      bool known = info != nullptr && i < info->param_count;
      json["args"][known ? info->params[i].name : fmt::format("arg{}", i)] = m.args[i];
    }
    if (!m.inputs.empty()) json["inputs"] = TensorsToJson(m.inputs);
    if (!m.blob.empty()) json["blob"] = HexText(m.blob);
    if (!m.text.empty()) json["name"] = m.text;
    if (const uint64_t tag = ProfilerTag(m); tag != 0) json["profiler_tag"] = tag;
  }
  void operator()(const format::CallLeave& m) const {
    json["enter"] = m.enter_seq;
    json["result"] = m.result;
    for (uint64_t out : m.outs) json["outs"].push_back(out);
    if (!m.blob.empty()) json["blob"] = HexText(m.blob);
  }
  void operator()(const format::CallResults& m) const {
    if (m.comm != 0) json["comm"] = m.comm - 1;
    json[m.comm != 0 ? "seq_on_comm" : "enter"] = m.comm_seq;
    json["outputs"] = TensorsToJson(m.outputs);
  }
  void operator()(const format::AlgorithmChosen& m) const {
    json["call"] = summary.ApiName(m.api);
    json["comm"] = m.comm - 1;
    json["seq_on_comm"] = m.comm_seq;
    json["algorithm"] = m.algorithm;
    json["protocol"] = m.protocol;
    if (m.channels != 0) json["channels"] = m.channels;
    if (m.warps != 0) json["warps"] = m.warps;
  }
  void operator()(const format::Input& m) const {
    json["call"] = summary.ApiName(m.api);
    json["key"] = m.key;
    json["result"] = m.result;
    if (m.error != 0) json["errno"] = m.error;
    if (!m.data.empty()) json["data"] = HexText(m.data);
    if (!m.hash.IsZero()) json["payload"] = HashText(m.hash);
  }
  void operator()(const format::ClockRun& m) const {
    format::ForEachReading(m, [&](format::ClockSource source, int64_t value) {
      format::LockReading lock;
      if (!format::ReadLock(source, value, lock))
        json["readings"].push_back({{"clock", ClockName(source)}, {"ns", value}});
      else if (lock.is_turn)
        json["readings"].push_back({{"lock", format::LockUseName(lock.use)},
                                    {"counter", lock.counter},
                                    {"turn", lock.turn}});
      else
        json["readings"].push_back({{"lock", format::LockUseName(lock.use)},
                                    {"counter", lock.counter},
                                    {"outcome", lock.code}});
    });
  }
  void operator()(const format::Snapshot& m) const {
    json["name"] = m.name;
    json["opaque"] = m.opaque;
    json["shape"] = nlohmann::json::array();
    for (uint64_t extent : m.shape) json["shape"].push_back(extent);
    json["tensor"] = TensorToJson(m.tensor);
    if (m.checkpoint != 0) json["checkpoint"] = m.checkpoint;
  }
  void operator()(const format::Checkpoint& m) const {
    json["checkpoint"] = m.number;
    json["step"] = m.step;
    json["items"] = m.items;
    json["bytes"] = m.bytes;
    json["missing"] = m.missing;
  }
  void operator()(const format::OptimizerUpdate& m) const {
    json["optimizer"] = OptimizerName(m.optimizer);
    json["update"] = m.updates;
    json["count"] = m.count;
    json["learning_rate"] = m.learning_rate;
    json["beta1"] = m.beta1;
    json["beta2"] = m.beta2;
    json["epsilon"] = m.epsilon;
    json["weight_decay"] = m.weight_decay;
    json["gradient_scale"] = m.gradient_scale;
    json["nesterov"] = m.nesterov != 0;
    for (const auto& [name, address] :
         {std::pair{"parameters", m.parameters}, std::pair{"first_moment", m.first_moment},
          std::pair{"second_moment", m.second_moment}, std::pair{"gradient", m.gradient}})
      if (address != 0) json[name] = fmt::format("{:#x}", address);
  }
  void operator()(const format::ThreadStart& m) const {
    json["name"] = m.name;
    json["tid"] = m.tid;
  }
  void operator()(const format::CommCreated& m) const {
    json["comm"] = m.comm - 1;
    json["hash"] = fmt::format("{:016x}", m.hash);
    json["rank"] = m.rank;
    json["nranks"] = m.nranks;
    if (m.parent != 0) json["parent"] = m.parent - 1;
    if (!m.name.empty()) json["name"] = m.name;
    json["device"] = m.device;
    if (m.joined_as != 0) json["joined_as"] = fmt::format("{:016x}", m.joined_as);
  }
  void operator()(const format::ModuleLoaded& m) const {
    json["module"] = m.module;
    json["path"] = m.path;
    json["build_id"] = HexText(m.build_id);
    json["base"] = m.base;
  }
  void operator()(const format::StackDefined& m) const {
    json["stack"] = m.stack;
    for (const format::StackFrame& f : m.frames)
      json["frames"].push_back({{"module", f.module}, {"offset", f.offset}});
  }
  void operator()(const format::Crash& m) const {
    json["signal"] = SignalName(static_cast<int>(m.signal));
    json["code"] = m.code;
    json["address"] = m.address;
    json["pc"] = m.pc;
    for (const format::StackFrame& f : m.frames)
      json["frames"].push_back({{"module", f.module}, {"offset", f.offset}});
  }
  void operator()(const format::Degraded& m) const {
    json["reason"] = m.reason;
    json["events_lost"] = m.events_lost;
    json["payloads_lost"] = m.payloads_lost;
    if (m.remark != 0) json["remark"] = true;
  }
  void operator()(const format::AsyncError& m) const {
    json["comm"] = m.comm - 1;
    json["result"] = m.result;
    if (m.given_up_by == 0) return;
    json["given_up_by"] = summary.ApiName(m.given_up_by - 1);
    json["under_way"] = m.under_way;
  }
  void operator()(const format::InputFile& m) const {
    json["file"] = m.file;
    json["path"] = m.path;
    if (m.error != 0) json["errno"] = m.error;
    json["mode"] = m.mode;
    json["size"] = m.size;
    json["mtime_ns"] = m.mtime_ns;
    json["opens"] = m.opens;
    if (m.written) json["written"] = true;
    if (m.program) json["program"] = true;
    if (m.tries != 0) json["tries"] = m.tries;
    if (m.looks != 0) json["looks"] = m.looks;
    if (S_ISLNK(m.mode)) json["link"] = m.entries;
    if (!m.entries_hash.IsZero()) json["entries"] = HashText(m.entries_hash);
  }
  void operator()(const format::FileRead& m) const {
    json["file"] = m.file;
    json["how"] = m.how;
    json["kept"] = m.payload == static_cast<uint32_t>(format::PayloadState::kKept);
    for (const format::FileRange& range : format::RangesOf(m))
      json["ranges"].push_back(
          {{"offset", range.begin}, {"size", range.size}, {"hash", HashText(range.hash)}});
  }
  void operator()(const format::ConnectionOpened& m) const {
    json["connection"] = m.connection;
    json["name"] = m.name;
    json["kind_of_connection"] = m.kind;
    json["type"] = m.type;
    if (!m.local.empty()) json["local"] = HexText(m.local);
    if (!m.remote.empty()) json["remote"] = HexText(m.remote);
    json["result"] = m.result;
    if (m.error != 0) json["errno"] = m.error;
    if (m.listener != 0) json["listener"] = m.listener;
    if (m.own) json["own"] = true;
  }
  void operator()(const format::Transfer& m) const {
    json["connection"] = m.connection;
    json["direction"] = m.direction == 0   ? "received"
                        : m.direction == 1 ? "sent"
                        : m.direction == 2 ? "state"
                                           : "peeked";
    json["number"] = m.number;
    json["result"] = m.result;
    if (m.error != 0) json["errno"] = m.error;
    if (!m.data.empty()) json["data"] = HexText(m.data);
    if (!m.hash.IsZero()) json["payload"] = HashText(m.hash);
    json["sent_before"] = m.sent_before;
  }
  void operator()(const format::HandleDefined& m) const {
    json["kind_of_handle"] = m.kind;
    json["id"] = m.id;
    json["value"] = m.value;
  }
  void operator()(const format::ProcessExit& m) const {
    json["code"] = m.code;
    json["how"] = m.how;
    Program(m.program, m.arguments);
  }
  void Program(std::string_view program, std::string_view arguments) const {
    if (program.empty()) return;
    json["program"] = program;
    json["arguments"] = ArgumentsOf(arguments);
  }
  void operator()(const format::Child& m) const {
    json["pid"] = m.pid;
    if (m.number != 0) json["number"] = m.number;
    if (m.ended) json["end"] = {{"exit_code", m.exit_code}, {"signal", m.signal}};
    Program(m.program, m.arguments);
  }
  void operator()(const format::WindowChange& m) const {
    const bool marked = m.what == static_cast<uint32_t>(format::WindowEvent::kMarked);
    json["what"] = marked ? "marked" : "dropped";
    json["first_segment"] = m.first_segment;
    json["last_segment"] = m.last_segment;
    if (!m.reason.empty()) json["reason"] = m.reason;
    if (!marked) json["payloads"] = m.payloads;
    if (!marked) json["payload_bytes"] = m.payload_bytes;
  }
};

}  // namespace

nlohmann::json TensorToJson(const format::Tensor& tensor) {
  nlohmann::json json = {{"param", tensor.param},
                         {"dtype", digest::DTypeText(tensor.dtype)},
                         {"count", tensor.count},
                         {"address", tensor.address}};
  if (tensor.payload == static_cast<uint32_t>(format::PayloadState::kAborted))
    json["aborted"] = true;
  if (tensor.hash.IsZero()) return json;
  json["hash"] = HashText(tensor.hash);
  json["nan"] = tensor.stats.nan_count;
  json["inf"] = tensor.stats.inf_count;
  json["min"] = tensor.stats.min;
  json["max"] = tensor.stats.max;
  json["sum"] = tensor.stats.sum;
  json["sum_squares"] = tensor.stats.sum_squares;
  json["kept"] = tensor.payload == static_cast<uint32_t>(format::PayloadState::kKept);
  return json;
}

nlohmann::json EventToJson(const Event& event, const RankSummary& summary) {
  nlohmann::json json = {{"thread", summary.ThreadName(event.thread)},
                         {"seq", event.seq},
                         {"time_ns", event.time_ns},
                         {"kind", KindName(event)}};
  std::visit(JsonWriter{summary, json}, event.body);
  return json;
}

}  // namespace deja::cli

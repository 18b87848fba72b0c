// What a program is answered that asks `deja serve`.
#include "cli/serve/operation_server.h"

#include <gtest/gtest.h>

#include "api/c10d_table.h"
#include "tests/unit/cli/written_rank.h"

namespace deja::cli {
namespace {

using api::C10dApi;
using nlohmann::json;

// One group, on which the rank issued one all-reduce.
class OperationServerTest : public testing::Test {
 protected:
  OperationServerTest() {
    written_.Add(format::ThreadStart{0, "0", 4711});
    format::CallEnter group;
    group.api = static_cast<uint32_t>(C10dApi::c10d_new_group);
    format::CallLeave leave;
    leave.enter_seq = written_.Add(group);
    format::CommCreated created;
    created.comm = 1;
    created.nranks = 2;
    created.name = "default_pg";
    written_.Add(created);
    written_.Add(leave);
    format::CallEnter enter;
    enter.api = static_cast<uint32_t>(C10dApi::c10d_allreduce);
    enter.comm = 1;
    enter.comm_seq = 1;
    const api::ApiInfo* info = api::FindC10d(enter.api);
    for (uint32_t i = 0; i < info->param_count; ++i) enter.args.push_back(0);
    leave.enter_seq = written_.Add(enter);
    written_.Add(leave);
    written_.EndBatch();
  }

  json Answer(const std::string& request) {
    const format::RankReader& reader = written_.Reader();
    const RecordedOperations recorded(reader);
    const RankSummary summary = ReadRankSummary(reader);
    return OperationServer(reader, recorded, summary).Answer(json::parse(request), {}).words;
  }

  WrittenRank written_;
};

TEST_F(OperationServerTest, TheRecordedOperation) {
  const json words = Answer(R"({"group": 0, "operation": "c10d_allreduce"})");
  EXPECT_EQ(words["number"], 1) << words;
  EXPECT_FALSE(words.contains("divergence")) << words;
}

TEST_F(OperationServerTest, AGroupIsAWholeNumber) {
  for (const char* group : {"-8888888888888888888888888", "1e300", "0.5", "-1", "1", "null"}) {
    const json words =
        Answer(std::string(R"({"operation": "c10d_allreduce", "group": )") + group + "}");
    EXPECT_EQ(words["error"], "there is no such operation or group") << group;
  }
}

TEST_F(OperationServerTest, AnArgumentThatIsNoWholeNumberDiffersFromTheRecordedOne) {
  for (const char* op : {"-1e300", "0.5", "null", "\"0\""}) {
    const json words =
        Answer(std::string(R"({"group": 0, "operation": "c10d_allreduce", "op": )") + op + "}");
    ASSERT_TRUE(words.contains("divergence")) << words;
    EXPECT_EQ(words["divergence"]["kind"], "signature");
    EXPECT_EQ(words["divergence"]["live"]["op"], json::parse(op));
    EXPECT_EQ(words["divergence"]["recorded"]["op"], 0);
  }
}

}  // namespace
}  // namespace deja::cli

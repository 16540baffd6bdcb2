// Each event as JSON, member by member.

#include <string>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <troupe/runtime/events/event_json.hpp>

#include "samples.hpp"

namespace troupe::events {
namespace {

using nlohmann::json;
using ::testing::Not;

// What every line has besides stands in the test.
const std::vector<std::string> forms{
    R"({"Event": "SparkListenerResourceProfileAdded", "Resource Profile Id": 5,
        "Executor Resource Requests": {
          "cores": {"Resource Name": "cores", "Amount": 4, "Discovery Script": "", "Vendor": ""},
          "gpu": {"Resource Name": "gpu", "Amount": 2, "Discovery Script": "/opt/find gpus", "Vendor": "nvidia.com"},
          "gpu-memory": {"Resource Name": "gpu-memory", "Amount": 42949672960, "Discovery Script": "", "Vendor": "",
                         "Counted": true}},
        "Task Resource Requests": {
          "cpus": {"Resource Name": "cpus", "Amount": 0.333333333333},
          "gpu": {"Resource Name": "gpu", "Amount": 0.5},
          "gpu-memory": {"Resource Name": "gpu-memory", "Amount": 9223372036854775807.0}},
        "Max Tasks Per Executor": 3, "Exclusive": true, "Memory Ceiling": 17179869184,
        "Alternatives": [
          {"Executor Resource Requests": {},
           "Task Resource Requests": {"cpus": {"Resource Name": "cpus", "Amount": 16.0}}},
          {"Executor Resource Requests": {}, "Task Resource Requests": {}}]})",
    R"({"Event": "SparkListenerJobStart", "Job ID": 2, "Submission Time": -1000, "Stage IDs": [20, 21, 22],
        "Properties": {"spark.job.description": "reads"}})",
    R"({"Event": "SparkListenerJobEnd", "Job ID": 2, "Completion Time": -1000,
        "Job Result": {"Result": "JobFailed", "Exception": {"Message": "stage 1", "Stack Trace": []}},
        "State": "failed", "Error": "task-failed"})",
    R"({"Event": "SparkListenerStageSubmitted", "Job ID": 2, "Properties": {},
        "Stage Info": {"Stage ID": 21, "Stage Attempt ID": 1, "Stage Name": "align", "Number of Tasks": 100,
                       "RDD Info": [], "Parent IDs": [], "Details": "", "Submission Time": -1000, "Accumulables": [],
                       "Resource Profile Id": 5}})",
    R"({"Event": "SparkListenerStageCompleted", "Job ID": 2, "Duration Nanoseconds": 2500000000, "Error": "cancelled",
        "Stage Info": {"Stage ID": 21, "Stage Attempt ID": 1, "Stage Name": "align", "Number of Tasks": 100,
                       "RDD Info": [], "Parent IDs": [], "Details": "", "Submission Time": -3500, "Accumulables": [],
                       "Completion Time": -1000, "Failure Reason": "why", "Resource Profile Id": 5}})",
    R"({"Event": "TroupeLeaseGranted", "Lease ID": 31, "Executor ID": "7", "Resource Profile Id": 5,
        "Holding": {"CPUs": 2.0, "Resources": {
          "gpu": [{"Address": "0", "Amount": 0.25}, {"Address": "GPU-1b2c", "Amount": 1.0}],
          "licence": [{"Address": "", "Amount": 3.0}]}}})",
    R"({"Event": "TroupeLeaseReleased", "Lease ID": 31, "Executor ID": "7"})",
    R"({"Event": "TroupeLeaseRefused", "Lease ID": 31, "Executor ID": "7", "Reason": "gpu 0 is taken"})",
    R"({"Event": "TroupeTasksSucceeded", "Stage ID": 21, "Lease ID": 31, "Executor ID": "7", "Number of Tasks": 256,
        "First Partition ID": 64})",
    R"({"Event": "TroupeTaskFailed", "Stage ID": 21, "Partition ID": 5, "Attempt": 1, "Executor ID": "7",
        "Status": "lost", "Cause": "memory-limit", "Message": "\u0000\ufffd/\ufffd("})",
    R"({"Event": "TroupeExecutorRequested", "Request ID": 3, "Shape ID": 6, "Resource Profile": "cores 4"})",
    R"({"Event": "SparkListenerExecutorAdded", "Executor ID": "7",
        "Executor Info": {
          "Host": "host-a", "Total Cores": 8, "Log Urls": {"log": "/run/troupe/\u0000\ufffd/\ufffd("},
          "Attributes": {"PID": "4242", "BUILD_ID": "b:1f"},
          "Resources": {"gpu": {"name": "gpu", "addresses": ["0", "1"], "amount": 2},
                        "gpu-memory": {"name": "gpu-memory", "addresses": [], "amount": 42949672960},
                        "licence": {"name": "licence", "addresses": [], "amount": 5}},
          "Resource Profile Id": 5, "Registration Time": -1000},
        "Request ID": 3, "Shape ID": 6, "Incarnation": 9223372036854775809, "Memory": 68719476742, "Slots": 4,
        "Native": true, "In Process": true, "Block Endpoint": "host-a:65535", "Resource Profile": "PROFILE"})",
    R"({"Event": "SparkListenerExecutorRemoved", "Executor ID": "7", "Removed Reason": "silent for 10s", "Lost": true,
        "Exit": {"Cause": "EXIT", "Exit Code": -3, "Signal": 9, "Memory Limit": 268435456,
                 "Peak Memory": 268435455}})",
    R"({"Event": "TroupeMapOutputLost", "Stage ID": 20, "Partition ID": 4, "Executor ID": "7"})",
    R"({"Event": "TroupeAttemptOverdue", "Job ID": 2, "Stage ID": 21, "Partition ID": 5, "Attempt": 1,
        "Executor ID": "7", "Executor Replaced": true, "Message": "it still runs"})",
    R"({"Event": "TroupeTaskEscalated", "Stage ID": 21, "Partition ID": 5, "Attempt": 1, "Executor ID": "7",
        "Resource Profile Id": 9})",
    R"({"Event": "org.apache.spark.scheduler.SparkListenerSpeculativeTaskSubmitted", "stageId": 21,
        "stageAttemptId": 3, "taskIndex": 5, "partitionId": 5, "Attempt": 1, "Executor ID": "7"})",
    R"({"Event": "org.apache.spark.scheduler.SparkListenerExecutorExcluded", "time": -1000, "executorId": "7",
        "taskFailures": 2, "Host": "alpha", "Resource Profile Id": 3, "At Most Nanoseconds": 3600000000000,
        "Last Failure": "exit code 1"})",
    R"({"Event": "org.apache.spark.scheduler.SparkListenerExecutorUnexcluded", "time": -1000, "executorId": "7",
        "Resource Profile Id": 3, "Reason": "its time is over"})",
    R"({"Event": "org.apache.spark.scheduler.SparkListenerNodeExcluded", "time": -1000, "hostId": "alpha",
        "executorFailures": 2, "Resource Profile Id": 3, "At Most Nanoseconds": 3600000000000,
        "Last Failure": "exit code 1"})",
    R"({"Event": "org.apache.spark.scheduler.SparkListenerNodeUnexcluded", "time": -1000, "hostId": "alpha",
        "Resource Profile Id": 3, "Reason": "its time is over"})",
    R"({"Event": "org.apache.spark.scheduler.SparkListenerUnschedulableTaskSetAdded", "stageId": 21,
        "stageAttemptId": 3, "Job ID": 2, "Resource Profile Id": 3, "Reason": "all 2 executors are excluded"})",
    R"({"Event": "SparkListenerStageCompleted", "Job ID": 2, "Duration Nanoseconds": 2500000000, "Restarted": true,
        "Stage Info": {"Stage ID": 21, "Stage Attempt ID": 1, "Stage Name": "align", "Number of Tasks": 100,
                       "RDD Info": [], "Parent IDs": [], "Details": "", "Submission Time": -3500, "Accumulables": [],
                       "Completion Time": -1000, "Failure Reason": "partition 2 failed",
                       "Resource Profile Id": 5}})",
};

TEST(an_event_as_json, has_every_member_on_one_line) {
  const auto all = samples::of<event_batch>().front().records;
  ASSERT_EQ(all.size(), forms.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto line = to_json(all[i]);
    SCOPED_TRACE(line);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_TRUE(line.starts_with("{\"Event\":")) << "readers look for it there";
    const auto is = json::parse(line, nullptr, false);
    ASSERT_TRUE(is.is_object());
    auto wanted = json::parse(forms[i]);
    wanted["Number"] = all[i].number;
    wanted["Timestamp"] = -1000;
    wanted["Unix Nanoseconds"] = all[i].unix_nanoseconds;
    if (const auto* added = std::get_if<executor_added>(&all[i].content))
      wanted["Resource Profile"] = to_string(added->info.profile);
    if (const auto* removed = std::get_if<executor_removed>(&all[i].content))
      wanted["Exit"]["Cause"] = to_string(removed->exit);
    EXPECT_EQ(is, wanted) << json::diff(is, wanted).dump();
  }
}

TEST(an_event_as_json, leaves_out_what_there_is_not) {
  const auto of = [](any content) { return json::parse(to_json({1, 0, std::move(content)})); };
  EXPECT_EQ(of(job_ended{job_id{1}, job_state::succeeded, {}})["Job Result"], (json{{"Result", "JobSucceeded"}}));
  EXPECT_FALSE(of(stage_completed{})["Stage Info"].contains("Failure Reason"));
  EXPECT_FALSE(of(executor_added{})["Executor Info"].contains("Resource Profile Id")) << "0 is the default profile";
  EXPECT_FALSE(of(executor_removed{}).contains("Exit"));
  resource_profile plain;
  plain.executor["memory"] = {(std::int64_t{3} << 20) + 1, "", ""};
  const auto profile = of(profile_added{profile_id{1}, plain});
  EXPECT_FALSE(profile.contains("Alternatives"));
  EXPECT_FALSE(profile.contains("Exclusive"));
  const auto& memory = profile["Executor Resource Requests"]["memory"];
  EXPECT_EQ(memory["Amount"], 4) << "MiB, rounded up";
  EXPECT_EQ(memory["Bytes"], 3'145'729);
}

TEST(an_event_as_json, keeps_line_feeds_inside_of_texts) {
  const auto line = to_json({1, 0, lease_refused{lease_id{1}, executor_id{1}, "two\nlines\r"}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(json::parse(line)["Reason"], "two\nlines\r");
}

TEST(lines_about_the_file, say_who_writes_it_and_what_is_missing) {
  EXPECT_EQ(json::parse(log_start_to_json("0.1", "s", 2'000'001)),
            json::parse(R"({"Event": "TroupeLogStart", "Troupe Version": "0.1", "Session ID": "s", "Timestamp": 2,
                            "Unix Nanoseconds": 2000001})"));
  EXPECT_EQ(json::parse(missing_to_json(3, 5, 2'000'001)),
            json::parse(R"({"Event": "TroupeEventsMissing", "First Number": 3, "Last Number": 5,
                            "Number of Events": 3, "Timestamp": 2, "Unix Nanoseconds": 2000001})"));
}

} // namespace
} // namespace troupe::events

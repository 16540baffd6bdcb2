#include "support.hpp"

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <troupe/runtime/config/job_file.hpp>
#include <troupe/runtime/config/job_places.hpp>

namespace troupe::testing::job_places_tests {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A folder with `data/a.txt` and `data/b.txt`, and jobs beside it.
class job_places : public ::testing::Test {
protected:
  job_places() {
    auto text = (fs::temp_directory_path() / "troupe-places-XXXXXX").string();
    base_ = ::mkdtemp(text.data());
    put("data/a.txt");
    put("data/b.txt");
  }
  ~job_places() override { fs::remove_all(base_); }

  void put(const std::string& name) {
    fs::create_directories(fs::path{base_ + "/" + name}.parent_path());
    std::ofstream{base_ + "/" + name} << "the only copy";
  }

  /// What is wrong with a job of these stages, each a line; empty: nothing.
  std::string fault(const std::vector<std::string>& stages, const std::string& head = "") {
    const auto file = base_ + "/job.yaml";
    std::ofstream text{file};
    text << "name: j\n" << head << "stages:\n";
    for (const auto& stage : stages) text << "  " << stage << "\n";
    text.close();
    const auto job = load_job(file, {});
    if (!job) EXPECT_EQ(exit_code_of(job.error().code), 2);
    return job ? "" : job.error().message;
  }

  std::string base_;
};

TEST_F(job_places, no_output_lies_on_an_input_of_its_stage) {
  EXPECT_THAT(fault({R"(data: {for-each: "data/*.txt", run: [cp, "{input}", "{output}"], outputs: ["{name}"]})"},
                    "output: .\n"),
              HasSubstr("job.yaml:4: stage data: its output " + base_ + "/data/a.txt would lie on the input " + base_ +
                        "/data/a.txt, which for-each of stage data has found; give another output:"));
  // Not by its folder, but by a link to it.
  fs::create_symlink("data", base_ + "/other");
  EXPECT_THAT(fault({R"(other: {for-each: "data/*.txt", run: [cp, "{input}", "{output}"], outputs: ["{name}"]})"},
                    "output: .\n"),
              AllOf(HasSubstr("its output " + base_ + "/other/a.txt would lie on the input " + base_ + "/data/a.txt")));
  EXPECT_EQ(
      fault({R"(data: {for-each: "data/*.txt", run: [x, "{output}"], outputs: ["{stem}.counts"]})"}, "output: .\n"),
      "");
}

TEST_F(job_places, no_output_lies_on_an_input_of_another_stage) {
  EXPECT_THAT(fault({R"(data: {run: [x], outputs: [b.txt]})", R"(read: {for-each: data/b.txt, run: [x, "{input}"]})"},
                    "output: .\n"),
              AllOf(HasSubstr("stage data"), HasSubstr("stage read"), HasSubstr(base_ + "/data")));
  // The input is a link to what the output would replace.
  fs::create_symlink("../data/b.txt", base_ + "/data/link");
  fs::create_directory(base_ + "/in");
  fs::create_symlink("../data/link", base_ + "/in/b");
  EXPECT_THAT(fault({R"(data: {run: [x], outputs: [b.txt]})", R"(read: {for-each: "in/*", run: [x, "{input}"]})"},
                    "output: .\n"),
              HasSubstr("its output " + base_ + "/data/b.txt would lie on the input " + base_ +
                        "/in/b, which for-each "
                        "of stage read has found; give another output:, or other names in outputs:"));
  EXPECT_THAT(fault({R"(data: {run: [x], outputs: [link]})", R"(read: {for-each: "in/*", run: [x, "{input}"]})"},
                    "output: .\n"),
              HasSubstr("its output " + base_ + "/data/link would lie on the input " + base_ + "/in/b"));
}

TEST_F(job_places, no_output_lies_above_an_input) {
  put("real/f");
  fs::create_symlink("../real", base_ + "/data/l");
  EXPECT_THAT(
      fault({R"(data: {run: [x], outputs: [l]})", R"(read: {for-each: data/l/f, run: [x, "{input}"]})"}, "output: .\n"),
      HasSubstr("its output " + base_ + "/data/l would lie on the input " + base_ + "/data/l/f"));
}

TEST_F(job_places, no_output_lies_in_a_folder_that_is_an_input) {
  fs::create_symlink("data", base_ + "/folder");
  EXPECT_THAT(fault({R"(data: {run: [x], outputs: [c.txt]})", R"(read: {for-each: folder, run: [x, "{input}"]})"},
                    "output: .\n"),
              HasSubstr("its output " + base_ + "/data/c.txt would lie in " + base_ +
                        "/folder, which for-each of stage "
                        "read has found"));
  EXPECT_EQ(fault({R"(data: {run: [x], outputs: [c.txt]})", R"(read: {for-each: folder, run: [x, "{input}"]})"}), "");
}

TEST_F(job_places, no_output_lies_on_another_one) {
  EXPECT_THAT(fault({R"(s: {run: [x], outputs: [a/b, a]})"}),
              AllOf(HasSubstr("its output " + base_ + "/out/s/a/b would lie below " + base_ +
                              "/out/s/a, another one of its outputs")));
  fs::create_directories(base_ + "/out/s");
  fs::create_symlink("s", base_ + "/out/t");
  EXPECT_THAT(
      fault({R"(s: {run: [x], outputs: [o]})", R"(t: {run: [x], outputs: [o]})"}),
      HasSubstr("stage t: its output " + base_ + "/out/t/o would lie on " + base_ + "/out/s/o, an output of stage s"));
  EXPECT_EQ(fault({R"(s: {run: [x], outputs: [o]})", R"(t: {run: [x], outputs: [p]})"}), "");
}

TEST_F(job_places, no_output_lies_on_one_whose_name_differs_by_case_where_that_is_one) {
  declared_stage declared;
  declared.name = "s";
  declared.run = {"x"};
  const planned_stage planned{base_ + "/out/s", {{{}, {"Report"}}, {{}, {"report"}}}};
  const job_folders job{"job.yaml", base_, base_ + "/out"};
  EXPECT_TRUE(check_places(job, {{&declared, &planned}}, {}, file_places{[](const auto&) { return false; }}));
  EXPECT_THAT(message_of(check_places(job, {{&declared, &planned}}, {}, file_places{[](const auto&) { return true; }})),
              HasSubstr("its output " + base_ + "/out/s/report would lie on " + base_ + "/out/s/Report"));
}

TEST_F(job_places, no_output_lies_on_a_file_that_the_job_names) {
  const auto made = [](const std::string& name) { return "data: {run: [x], outputs: [" + name + "]}"; };
  const std::string here = "output: .\n";
  EXPECT_THAT(fault({made("b.txt"), "s: {run: [cat, " + base_ + "/data/b.txt]}"}, here),
              HasSubstr("its output " + base_ + "/data/b.txt would lie on " + base_ +
                        "/data/b.txt, which run of stage s names"));
  EXPECT_THAT(fault({made("b.txt"), "s: {run: [sh, -c, 'cat <" + base_ + "/data/b.txt|wc']}"}, here),
              HasSubstr("which run of stage s names"));
  EXPECT_THAT(fault({made("tool"), "s: {run: [data/tool]}"}, here), HasSubstr("which run of stage s names"));
  EXPECT_THAT(fault({made("b.txt"), "s: {run: [x], environment: {REF: " + base_ + "/data/b.txt}}"}, here),
              HasSubstr("which environment.REF of stage s names"));
  EXPECT_THAT(fault({made("find")}, here +
                                        "profiles: {g: {executor: {cores: 1, memory: 1g, resource: {gpu: {amount: 1, "
                                        "discovery-script: data/find}}}, task: {cpus: 1}}}\n"),
              HasSubstr("would lie on the discovery script of profile g"));
  const auto folder = fs::path{base_}.filename().string();
  EXPECT_THAT(fault({folder + ": {run: [x], outputs: [job.yaml]}"}, "output: ..\n"),
              HasSubstr("would lie on the job file"));
  EXPECT_THAT(fault({made("b.txt"), "s: {run: [x], environment: {LIST: '/a:" + base_ + "/data/b.txt:/c'}}"}, here),
              HasSubstr("which environment.LIST of stage s names"));
  EXPECT_THAT(fault({made("b.txt"), "s: {run: [x], environment: {LIST: '.:" + base_ + "/data/b.txt'}}"}, here),
              HasSubstr("which environment.LIST of stage s names"));
  EXPECT_EQ(fault({made("b.txt"), "s: {run: [scp, x, 'host:" + base_ + "/data/b.txt']}"}, here), "");
  // A stage may name what another one has made before it, and a command's relative paths start elsewhere.
  EXPECT_EQ(fault({made("b.txt"), "s: {after: [data], run: [cat, " + base_ + "/data/b.txt]}"}, here), "");
  EXPECT_EQ(fault({made("b.txt"), "s: {run: [sh, -c, 'mkdir data; echo >data/b.txt']}"}, here), "");
}

TEST_F(job_places, no_pattern_for_a_shell_finds_what_the_job_makes) {
  const auto trim = R"(trim: {run: [x, "{output}"], outputs: ["{partition}.txt"]})";
  const auto all = [&](const std::string& text) {
    return "all: {after: [trim], run: [sh, -c, \"" + text + " >{output}\"], outputs: [all]}";
  };
  EXPECT_THAT(fault({trim, all("cat " + base_ + "/out/trim/*")}),
              HasSubstr("stage all: " + base_ +
                        "/out/trim/* in run may find what an earlier run has left of stage trim; "
                        "write {inputs} in its place, with after: [trim]"));
  EXPECT_THAT(fault({trim, all("cat " + base_ + "/out/t?im/[0-9].txt")}), HasSubstr("an earlier run"));
  EXPECT_THAT(fault({trim, all("cat " + base_ + "/out/all/al*")}), HasSubstr("give another output:"));
  EXPECT_THAT(fault({trim, R"(all: {after: [trim], run: [x], environment: {PARTS: ")" + base_ + R"(/out/*/*"}})"}),
              HasSubstr("in environment.PARTS may find"));
  const auto above = base_.substr(0, base_.rfind('/'));
  EXPECT_THAT(fault({trim, all("cat " + above + "/*/out/trim/*")}), HasSubstr("an earlier run"));
  EXPECT_THAT(fault({trim, all("cat " + base_ + "/*/trim/[[:digit:]].txt")}), HasSubstr("an earlier run"));
  EXPECT_EQ(fault({trim, all("ls " + base_ + "/*; ls " + above + "/*/*")}), "") << "folders that hold other things";
  EXPECT_EQ(fault({trim, all("cat " + base_ + "/data/*.txt")}), "");
  EXPECT_EQ(fault({trim, all("cat " + base_ + "/out/trim/*.csv")}), "");
  EXPECT_EQ(fault({trim, all("ls /*; awk '/*/'")}), "") << "not below the folder of outputs";
}

TEST_F(job_places, no_pattern_finds_what_the_job_makes) {
  const std::string trim = R"(trim: {for-each: "data/*.txt", run: [cp, "{input}", "{output}"]})";
  const auto upper = [](const std::string& files, const std::string& after) {
    return "upper: {" + after + "for-each: \"" + files + R"(", run: [cat, "{inputs}"]})";
  };
  // The first run finds nothing there; the second would.
  EXPECT_THAT(fault({trim, upper("out/trim/*", "after: [trim], ")}),
              AllOf(HasSubstr("job.yaml:4"),
                    HasSubstr("stage upper: for-each = out/trim/* may find what stage trim puts "
                              "into " +
                              base_ + "/out/trim, left by an earlier run"),
                    HasSubstr("after: {trim: one-to-one}"), HasSubstr("{inputs}")));
  for (const auto* files : {"out/trim/a", "out/*/a", "./out//trim/*", "out/trim", "*"})
    EXPECT_THAT(fault({trim, upper(files, "")}), HasSubstr("may find what stage trim puts")) << files;
  EXPECT_THAT(fault({trim, upper(base_ + "/out/trim/*", "")}), HasSubstr("may find what stage trim puts"));
  const std::string nested = R"(trim: {for-each: "data/*.txt", run: [x], outputs: ["{stem}/r.fq", "log/{stem}"]})";
  for (const auto* files : {"out/trim/*/r.fq", "out/trim/a/*", "*/trim/*/*", "out/*/log/a"})
    EXPECT_THAT(fault({nested, upper(files, "")}), HasSubstr("may find what stage trim puts")) << files;
  put("out/trim/c/other");
  EXPECT_EQ(
      fault({R"(trim: {for-each: "data/*.txt", run: [x], outputs: ["{stem}/r.fq"]})", upper("out/trim/*/other", "")}),
      "");
  fs::remove_all(base_ + "/out/trim/c");
  put("out/self/x");
  EXPECT_THAT(fault({R"(self: {for-each: "out/self/*", run: [x], outputs: [y]})"}),
              AllOf(HasSubstr("may find what stage self puts"), HasSubstr("names in outputs:")));
  EXPECT_EQ(fault({R"(self: {for-each: "out/self/x", run: [x], outputs: [y]})"}), "");
  // Found by way of a link.
  put("out/trim/c");
  fs::create_symlink("out/trim", base_ + "/trimmed");
  EXPECT_THAT(fault({trim, upper("trimmed/*", "after: [trim], ")}),
              AllOf(HasSubstr("for-each finds " + base_ + "/trimmed/c where stage trim puts its outputs"),
                    HasSubstr("after: {trim: one-to-one}")));
  put("out/earlier/d");
  EXPECT_EQ(fault({trim, upper("out/earlier/*", "")}), "") << "of a stage that is not in this job";
}

} // namespace
} // namespace troupe::testing::job_places_tests

// The CPU quota that is found in folders made for these tests.

#include "runtime/cgroup.hpp"
#include "runtime/cpus.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/no_descriptors.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace {

namespace fs = std::filesystem;

constexpr const char* mount_v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* mount_v1 =
    "25 30 0:22 / /proc rw - proc proc rw\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n";

// A file system of its own, below a temporary folder.
class canned {
 public:
  canned() {
    std::string name = (fs::temp_directory_path() / "weft-cgroup-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()));
    root_ = name;
  }
  ~canned() { fs::remove_all(root_); }
  canned(const canned&) = delete;
  canned& operator=(const canned&) = delete;

  canned& file(const std::string& path, const std::string& text) {
    fs::path p = root_ + path;
    fs::create_directories(p.parent_path());
    std::ofstream(p) << text;
    return *this;
  }
  canned& v1(const std::string& folder, const std::string& quota, const std::string& period) {
    return file(folder + "/cpu.cfs_quota_us", quota + "\n").file(folder + "/cpu.cfs_period_us", period + "\n");
  }
  unsigned quota() const { return weft::rt::cgroup_cpu_quota(root_); }

 private:
  std::string root_;
};

// Returns the quota with cgroup v2 and `text` in cpu.max.
unsigned with_cpu_max(const std::string& text) {
  return canned()
      .file("/proc/self/cgroup", "0::/a\n")
      .file("/proc/self/mountinfo", mount_v2)
      .file("/sys/fs/cgroup/a/cpu.max", text)
      .quota();
}

}  // namespace

TEST_CASE("cgroup: cpu.max") {
  CHECK(with_cpu_max("max 100000\n") == 0);
  CHECK(with_cpu_max("200000 100000\n") == 2);
  CHECK(with_cpu_max("200000 100000") == 2);
  CHECK(with_cpu_max("150000 100000\n") == 2);  // rounded up
  CHECK(with_cpu_max("200001 100000\n") == 3);
  CHECK(with_cpu_max("1000 100000\n") == 1);
  CHECK(with_cpu_max("50000 10000\n") == 5);
}

TEST_CASE("cgroup: what cannot be understood is no quota") {
  for (const char* text :
       {"", "\n", "max", "100000", "100000\n", "x y\n", "1e5 100000\n", "200000 100000 7\n", "200000x 100000\n",
        "200000 100000x\n", "0 100000\n", "200000 0\n", "-1 100000\n", "200000 -5\n",
        "99999999999999999999999 100000\n", "9223372036854775807 1\n", "  200000 100000\n"}) {
    CAPTURE(text);
    CHECK(with_cpu_max(text) == 0);
  }
  CHECK(with_cpu_max(std::string("2\0"
                                 "000000 100000\n",
                                 16)) == 0);
}

TEST_CASE("cgroup: the quota of each ancestor holds, the root's too") {
  canned c;
  c.file("/proc/self/cgroup", "0::/a/b/c\n").file("/proc/self/mountinfo", mount_v2);
  CHECK(c.quota() == 0);
  c.file("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  CHECK(c.quota() == 8);
  c.file("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  CHECK(c.quota() == 3);
  c.file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  CHECK(c.quota() == 3);
  c.file("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  CHECK(c.quota() == 1);
  c.file("/sys/fs/cgroup/other/cpu.max", "garbage");
  CHECK(c.quota() == 1);
}

TEST_CASE("cgroup: v1, where cpu is one of several controllers, and cpuset is another one") {
  canned c;
  c.file("/proc/self/cgroup", "5:cpuset:/wrong\n4:cpu,cpuacct:/a/b\n1:name=systemd:/user.slice\n")
      .file("/proc/self/mountinfo", mount_v1)
      .v1("/sys/fs/cgroup/cpuset/wrong", "100000", "100000")
      .v1("/sys/fs/cgroup/cpu,cpuacct/wrong", "100000", "100000");
  CHECK(c.quota() == 0);
  c.v1("/sys/fs/cgroup/cpu,cpuacct/a/b", "-1", "100000");
  CHECK(c.quota() == 0);
  c.v1("/sys/fs/cgroup/cpu,cpuacct/a/b", "450000", "100000");
  CHECK(c.quota() == 5);
  c.v1("/sys/fs/cgroup/cpu,cpuacct/a", "200000", "100000");
  CHECK(c.quota() == 2);
  c.v1("/sys/fs/cgroup/cpu,cpuacct/a", "many", "100000");
  CHECK(c.quota() == 5);
  c.v1("/sys/fs/cgroup/cpu,cpuacct", "100000", "");
  CHECK(c.quota() == 5);
}

TEST_CASE("cgroup: v1 and v2 at once: the smaller quota holds") {
  canned c;
  c.file("/proc/self/cgroup", "4:cpu,cpuacct:/a\n0::/a\n")
      .file("/proc/self/mountinfo",
            std::string(mount_v1) + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n")
      .v1("/sys/fs/cgroup/cpu,cpuacct/a", "400000", "100000");
  CHECK(c.quota() == 4);
  c.file("/sys/fs/cgroup/unified/a/cpu.max", "300000 100000\n");
  CHECK(c.quota() == 3);
}

TEST_CASE("cgroup: missing files") {
  CHECK(canned().quota() == 0);
  CHECK(canned().file("/proc/self/cgroup", "0::/a\n").quota() == 0);
  CHECK(canned().file("/proc/self/mountinfo", mount_v2).file("/sys/fs/cgroup/cpu.max", "100000 100000\n").quota() == 0);
  // Without mountinfo, cgroups are looked for where most systems have them.
  CHECK(canned().file("/proc/self/cgroup", "0::/a\n").file("/sys/fs/cgroup/a/cpu.max", "200000 100000\n").quota() == 2);
  CHECK(canned().file("/proc/self/cgroup", "3:cpu:/a\n").v1("/sys/fs/cgroup/cpu/a", "200000", "100000").quota() == 2);
}

TEST_CASE("cgroup: garbage instead of the list of cgroups and mounts") {
  for (const char* text :
       {"", "\n\n", ":", "::", ":::::", "0", "0:", "0::", "cpu", "0::no/slash\n", "1:cpu", "1:cpu:"}) {
    CAPTURE(text);
    canned c;
    c.file("/proc/self/cgroup", text).file("/proc/self/mountinfo", "- - -\n1 2 3 4 5 6 - cgroup2\n - cgroup2 a b\n");
    CHECK(c.quota() == 0);
  }
}

TEST_CASE("cgroup: namespaces and containers see a part of the hierarchy") {
  // A container that has its own folder mounted, but sees the host's path.
  canned docker;
  docker.file("/proc/self/cgroup", "0::/docker/abc\n")
      .file("/proc/self/mountinfo", "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n")
      .file("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  CHECK(docker.quota() == 2);

  // A folder below that one.
  canned below;
  below.file("/proc/self/cgroup", "0::/docker/abc/worker\n")
      .file("/proc/self/mountinfo", "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n")
      .file("/sys/fs/cgroup/worker/cpu.max", "100000 100000\n")
      .file("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  CHECK(below.quota() == 1);

  // A name that only begins like the mounted folder.
  canned beside;
  beside.file("/proc/self/cgroup", "0::/docker/abcdef\n")
      .file("/proc/self/mountinfo", "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n")
      .file("/sys/fs/cgroup/def/cpu.max", "100000 100000\n")
      .file("/sys/fs/cgroup/cpu.max", "300000 100000\n");
  CHECK(beside.quota() == 3);

  // A process outside of the root of its namespace: its path must not lead out of what is mounted.
  canned outside;
  outside.file("/proc/self/cgroup", "0::/../../other\n")
      .file("/proc/self/mountinfo", mount_v2)
      .file("/sys/other/cpu.max", "100000 100000\n")
      .file("/sys/fs/cgroup/cpu.max", "300000 100000\n");
  CHECK(outside.quota() == 3);

  // v1 in a container.
  canned v1;
  v1.file("/proc/self/cgroup", "4:cpu,cpuacct:/kubepods/pod1/abc\n")
      .file("/proc/self/mountinfo",
            "32 31 0:29 /kubepods/pod1/abc /sys/fs/cgroup/cpu ro - cgroup cgroup ro,cpu,cpuacct\n")
      .v1("/sys/fs/cgroup/cpu", "250000", "100000");
  CHECK(v1.quota() == 3);
}

TEST_CASE("cgroup: of several mounts, the one that shows most of what lies above the process") {
  const auto quota = [](const std::string& path, const std::string& host, const std::string& own) {
    return canned()
        .file("/proc/self/cgroup", "0::" + path + "\n")
        .file("/proc/self/mountinfo", "30 23 0:26 " + host + " /host/sys/fs/cgroup rw - cgroup2 cgroup2 rw\n" +
                                          "31 23 0:26 " + own + " /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
        .file("/host/sys/fs/cgroup/cpu.max", "max 100000\n")
        .file("/host/sys/fs/cgroup/a/cpu.max", "200000 100000\n")
        .file("/sys/fs/cgroup/cpu.max", "300000 100000\n")
        .quota();
  };
  CHECK(quota("/", "/../..", "/") == 3);     // only the second one shows the process
  CHECK(quota("/a/b", "/", "/a/b") == 2);    // the first one shows more of it
  CHECK(quota("/a/b", "/a/bc", "/a") == 3);  // "/a/bc" is no part of "/a/b"
  CHECK(quota("/a", "/", "/") == 2);         // the first of two that show as much
}

TEST_CASE("cgroup: paths with spaces and colons") {
  canned c;
  c.file("/proc/self/cgroup", "0::/a:b/c d\n")
      .file("/proc/self/mountinfo", "30 23 0:26 / /mnt/my\\040groups rw shared:1 master:2 - cgroup2 none rw\n")
      .file("/mnt/my groups/a:b/c d/cpu.max", "200000 100000\n");
  CHECK(c.quota() == 2);
}

TEST_CASE("cgroup: on this machine there is at least one processor") { CHECK(weft::rt::count_cpus(0) >= 1); }

TEST_CASE("cgroup: a quota that cannot be read for want of descriptors is the presumed one") {
  const unsigned all = weft::rt::count_cpus(0);
  weft::test::no_descriptors none;
  CHECK_THROWS_AS(weft::rt::cgroup_cpu_quota(""), std::system_error);
  CHECK(weft::rt::count_cpus(1) == 1);
  CHECK(weft::rt::count_cpus(0) >= all);
}

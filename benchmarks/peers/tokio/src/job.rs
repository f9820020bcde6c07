//! One run of one workload: its parameters and its results, as bench::job in support/bench.hpp.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

pub type Workload = (&'static str, Run);
pub type Run = for<'a> fn(&'a mut Job) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

pub struct Job {
    workload: &'static str,
    pub procs: usize,
    pub scale: f64,

    started: Instant,
    cpu_started: Duration,
    ns_per_op: f64,
    ops: usize,
    notes: Vec<(&'static str, f64)>,
}

/// measure!(job, n, k => work(k).await) times the work for k = n, after a warm-up with fewer operations.
macro_rules! measure {
    ($job:expr, $n:expr, $k:ident => $work:expr) => {{
        let n = $n;
        let $k = n / 16 + 1;
        $work;
        $job.start();
        let $k = n;
        $work;
        $job.stop(n);
    }};
}

impl Job {
    pub fn new(workload: &'static str, procs: usize, scale: f64) -> Self {
        let (started, cpu_started) = (Instant::now(), Duration::ZERO);
        Job {
            workload,
            procs,
            scale,
            started,
            cpu_started,
            ns_per_op: 0.0,
            ops: 0,
            notes: Vec::new(),
        }
    }

    /// Returns the number of operations: full at scale 1, in proportion at other scales, rounded down to a multiple of
    /// unit, but not to 0.
    pub fn count(&self, full: usize, unit: usize) -> usize {
        let n = (full as f64 * self.scale) as usize;
        unit.max(n / unit * unit)
    }

    /// The same for things that need this much memory each: no more than fit into three quarters of the memory that is
    /// free.
    pub fn count_in_memory(&self, full: usize, bytes_each: usize) -> usize {
        self.count(full, 1)
            .min(proc_field("/proc/meminfo", "MemAvailable:") / 4 * 3 / bytes_each)
    }

    /// Returns how many connections can have both ends in this process: `wanted`, or fewer if the descriptors do not
    /// suffice. Raises the limit on descriptors as far as it may.
    pub fn connections(wanted: usize) -> usize {
        unsafe {
            let mut files = std::mem::zeroed();
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut files);
            files.rlim_cur = files.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &files);
            wanted.min((files.rlim_cur as usize - 100) / 2)
        }
    }

    pub fn period(&self) -> Duration {
        Duration::from_secs_f64((2.0 * self.scale).max(1.0))
    }

    pub fn start(&mut self) {
        self.cpu_started = cpu_time();
        self.started = Instant::now();
    }

    pub fn stop(&mut self, n: usize) {
        self.ns_per_op = self.started.elapsed().as_nanos() as f64 / n as f64;
        self.ops = n;
        let cpu = (cpu_time() - self.cpu_started).as_nanos() as f64;
        self.note("cpu_ns_per_op", cpu / n as f64);
    }

    /// Reports percentiles, and the median as ns_per_op.
    pub fn report(&mut self, samples: &mut [Duration]) {
        self.percentiles(samples);
        self.ns_per_op = samples[samples.len() / 2].as_nanos() as f64;
        self.ops = samples.len();
    }

    /// Reports percentiles in addition to what was measured.
    pub fn percentiles(&mut self, samples: &mut [Duration]) {
        samples.sort_unstable();
        let percentile = |p: f64| {
            let i = (p / 100.0 * samples.len() as f64) as usize;
            samples[i.min(samples.len() - 1)].as_nanos() as f64
        };
        self.note("p50_ns", percentile(50.0));
        self.note("p99_ns", percentile(99.0));
        self.note("p999_ns", percentile(99.9));
        self.note("max_ns", percentile(100.0));
    }

    pub fn note(&mut self, name: &'static str, value: f64) {
        self.notes.push((name, value));
    }

    pub fn print(&self) {
        print!(r#"{{"workload": "{}", "procs": {}"#, self.workload, self.procs);
        print!(r#", "ns_per_op": {:.2}, "ops": {}"#, self.ns_per_op, self.ops);
        for (name, value) in &self.notes {
            print!(r#", "{name}": {value:.2}"#);
        }
        println!(r#", "peak_bytes": {}}}"#, usage().ru_maxrss * 1024);
    }
}

fn usage() -> libc::rusage {
    unsafe {
        let mut usage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    }
}

/// Returns the CPU time of all threads of this process, user and system.
fn cpu_time() -> Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// Returns how much memory of this process is resident, in bytes.
pub fn resident_bytes() -> usize {
    proc_field("/proc/self/smaps_rollup", "Rss:")
}

/// Returns the number in a line "Name:   123 kB" of a file in /proc, in bytes. `name` includes the colon.
fn proc_field(file: &str, name: &str) -> usize {
    let text = std::fs::read_to_string(file).expect(file);
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect(name);
    line.split_whitespace()
        .next()
        .and_then(|kib| kib.parse::<usize>().ok())
        .expect(name)
        * 1024
}

/// Random numbers by Park and Miller's method: the same ones in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0 * 48271 % 0x7fff_ffff;
        self.0 % limit
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for i in (1..all.len()).rev() {
            all.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

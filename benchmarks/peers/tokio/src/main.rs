//! The benchmark program for Tokio: the same workloads and the same command line as weft's (support/bench.hpp).
//!
//!     PROGRAM WORKLOAD PROCS [SCALE]     runs one and prints one line of JSON
//!     PROGRAM list                       prints the names of its workloads

#[macro_use]
mod job;

mod channels;
mod echo;
mod forkjoin;
mod growth;
mod hogs;
mod http;
mod idle;
mod select;
mod sieve;
mod skynet;
mod spawn;
mod sync;
mod timers;
mod wake_all;
mod yields;

use std::process::ExitCode;

use job::{Job, Workload};
use tokio::runtime::{Builder, Runtime};

const ALL: &[&[Workload]] = &[
    channels::HERE,
    echo::HERE,
    forkjoin::HERE,
    growth::HERE,
    hogs::HERE,
    http::HERE,
    idle::HERE,
    select::HERE,
    sieve::HERE,
    skynet::HERE,
    spawn::HERE,
    sync::HERE,
    timers::HERE,
    wake_all::HERE,
    yields::HERE,
];

/// On one thread, uses Tokio's current-thread scheduler: it has no locks and no stealing, and is faster there. The
/// exception is fib: it wants the youngest task to run first, which only the multi-thread scheduler does.
fn runtime(workload: &str, procs: usize) -> Runtime {
    let mut builder = match procs {
        1 if workload != "fib" => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder.worker_threads(procs).enable_all().build().expect("a runtime")
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    if args.len() == 2 && args[1] == "list" {
        for (name, _) in ALL.iter().copied().flatten() {
            println!("{name}");
        }
        return ExitCode::SUCCESS;
    }
    if args.len() != 3 && args.len() != 4 {
        eprintln!("usage: {} WORKLOAD PROCS [SCALE] | list", args[0]);
        return ExitCode::from(2);
    }
    let found = ALL.iter().copied().flatten().find(|(name, _)| *name == args[1]);
    let (Some((name, run)), Ok(procs @ 1..)) = (found, args[2].parse()) else {
        eprintln!("there is no workload {} for {} processors here", args[1], args[2]);
        return ExitCode::from(2);
    };
    let mut job = Job::new(name, procs, args.get(3).map_or(1.0, |s| s.parse().expect("a scale")));
    let run = *run;
    let runtime = runtime(name, procs);
    // The workload runs as a task, since what block_on runs itself does not run on one of the workers.
    let job = runtime.block_on(async {
        let whole = tokio::spawn(async move {
            run(&mut job).await;
            job
        });
        whole.await.expect("the workload")
    });
    job.print();
    runtime.shutdown_background(); // some tasks never end
    ExitCode::SUCCESS
}

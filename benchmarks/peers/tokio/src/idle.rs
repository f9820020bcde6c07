use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::echo::start_echo_server;
use crate::job::{Job, Workload};

/// Reads a clock that is the same in all processes, in ns.
fn monotonic() -> i64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

async fn idle(j: &mut Job) {
    let seconds = j.count(4, 1);
    start_echo_server().await;
    let gate = Arc::new(Notify::new());
    for _ in 0..1000 {
        let gate = gate.clone();
        tokio::spawn(async move { gate.notified().await });
    }
    sleep(Duration::from_millis(50)).await;
    j.start();
    sleep(Duration::from_secs(seconds as u64)).await;
    j.stop(seconds);
}

async fn wake_idle(j: &mut Job) {
    let n = j.count(1000, 1000);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // The sender is the same for all peers. It sends the current time once a millisecond.
    let mut other = Command::new(std::env::var("BENCH_TICKS").unwrap())
        .args(["ticks", &port.to_string(), &n.to_string()])
        .spawn()
        .unwrap();
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut late = Vec::new();
    for _ in 0..n {
        let sent = stream.read_i64_le().await.unwrap();
        late.push(Duration::from_nanos((monotonic() - sent) as u64));
    }
    other.wait().unwrap();
    j.report(&mut late);
}

pub const HERE: &[Workload] = &[
    ("idle", |j| Box::pin(idle(j))),
    ("wake_idle", |j| Box::pin(wake_idle(j))),
];

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio_util::task::TaskTracker;

use crate::job::{resident_bytes, Job, Workload};

async fn wake_all(j: &mut Job) {
    let n = j.count_in_memory(1_000_000, 12 * 1024);
    let gate = Arc::new(Notify::new());
    let arrived = Arc::new(AtomicUsize::new(0));
    let tasks = TaskTracker::new();
    let before = resident_bytes();
    let started = Instant::now();
    for _ in 0..n {
        let (gate, arrived) = (gate.clone(), arrived.clone());
        tasks.spawn(async move {
            let opened = gate.notified(); // from here on it does not miss notify_waiters()
            arrived.fetch_add(1, Ordering::Relaxed);
            opened.await;
        });
    }
    while arrived.load(Ordering::Relaxed) < n {
        yield_now().await;
    }
    yield_now().await; // so that the last ones wait
    j.note("created_ns", started.elapsed().as_nanos() as f64 / n as f64);
    j.note("bytes_per_parked", (resident_bytes() - before) as f64 / n as f64);
    tasks.close();
    j.start();
    gate.notify_waiters();
    tasks.wait().await;
    j.stop(n);
}

pub const HERE: &[Workload] = &[("wake_all", |j| Box::pin(wake_all(j)))];

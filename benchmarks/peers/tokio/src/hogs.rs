//! A task that computes and never awaits keeps its worker for good. Tokio's documentation recommends spawn_blocking for
//! such work, so the hogs run on the threads of spawn_blocking.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{spawn_blocking, JoinHandle};
use tokio::time::sleep;

use crate::echo::{connect, echo, start_echo_server};
use crate::job::{Job, Workload};

const MS: Duration = Duration::from_millis(1);

struct Hogs {
    stop: Arc<AtomicBool>,
    all: Vec<JoinHandle<()>>,
}

impl Hogs {
    async fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let hog = |stop: Arc<AtomicBool>| {
            while !stop.load(Ordering::Relaxed) {
                black_box(0);
            }
        };
        let all = (0..8)
            .map(|_| stop.clone())
            .map(|stop| spawn_blocking(move || hog(stop)))
            .collect();
        sleep(20 * MS).await; // until all have begun
        Hogs { stop, all }
    }

    async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for hog in self.all {
            hog.await.unwrap();
        }
    }
}

async fn hogs_sleep(j: &mut Job) {
    let hogs = Hogs::start().await;
    let mut times = Vec::new();
    let end = Instant::now() + j.period();
    while times.len() < 5 || Instant::now() < end {
        let start = Instant::now();
        sleep(MS).await;
        times.push(start.elapsed() - MS);
    }
    hogs.stop().await;
    j.report(&mut times);
}

async fn hogs_echo(j: &mut Job) {
    let mut stream = connect(start_echo_server().await).await;
    let hogs = Hogs::start().await;
    let mut times = Vec::new();
    let end = Instant::now() + j.period();
    while times.len() < 5 || Instant::now() < end {
        sleep(MS).await;
        let start = Instant::now();
        echo(&mut stream).await;
        times.push(start.elapsed());
    }
    hogs.stop().await;
    j.report(&mut times);
}

pub const HERE: &[Workload] = &[
    ("hogs_sleep", |j| Box::pin(hogs_sleep(j))),
    ("hogs_echo", |j| Box::pin(hogs_echo(j))),
];

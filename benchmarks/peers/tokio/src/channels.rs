//! Tokio has no unbuffered channel: the smallest one holds one value.

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::job::{Job, Workload};

async fn roundtrip(j: &mut Job) {
    let (ping, mut pinged) = mpsc::channel(1);
    let (pong, mut ponged) = mpsc::channel(1);
    tokio::spawn(async move {
        while let Some(v) = pinged.recv().await {
            pong.send(v).await.unwrap();
        }
    });
    let mut v = 0;
    measure!(j, j.count(1_000_000, 1), n => for _ in 0..n {
        ping.send(v).await.unwrap();
        v = ponged.recv().await.unwrap();
    });
}

/// Two tasks, each on a thread of its own, which blocks on the task.
async fn roundtrip_threads(j: &mut Job) {
    let (ping, mut pinged) = mpsc::channel(1);
    let (pong, mut ponged) = mpsc::channel(1);
    let (runtime, other_runtime) = (Handle::current(), Handle::current());
    let other = std::thread::spawn(move || {
        other_runtime.block_on(async {
            while let Some(v) = pinged.recv().await {
                pong.send(v).await.unwrap();
            }
        })
    });
    block_in_thread(|| {
        runtime.block_on(async {
            let mut v = 0;
            measure!(j, j.count(40_000, 1), n => for _ in 0..n {
                ping.send(v).await.unwrap();
                v = ponged.recv().await.unwrap();
            });
        })
    });
    drop(ping);
    other.join().unwrap();
}

fn block_in_thread(work: impl FnOnce() + Send) {
    std::thread::scope(|threads| threads.spawn(work).join().unwrap());
}

async fn one_to_one(n: usize) {
    let (tx, mut rx) = mpsc::channel(128);
    tokio::spawn(async move {
        for _ in 0..n {
            tx.send(1).await.unwrap();
        }
    });
    let consumer = tokio::spawn(async move { while rx.recv().await.is_some() {} });
    consumer.await.unwrap();
}

/// Uses async_channel, since Tokio's own channels have one consumer.
async fn eight_to_eight(n: usize) {
    let (tx, rx) = async_channel::bounded(128);
    let tasks = TaskTracker::new();
    for _ in 0..8 {
        let (tx, rx) = (tx.clone(), rx.clone());
        tasks.spawn(async move {
            for _ in 0..n / 8 {
                tx.send(1).await.unwrap();
            }
        });
        tasks.spawn(async move { while rx.recv().await.is_ok() {} });
    }
    drop(tx);
    tasks.close();
    tasks.wait().await;
}

async fn buffered_1_1(j: &mut Job) {
    measure!(j, j.count(2_000_000, 1), n => one_to_one(n).await);
}

async fn buffered_8_8(j: &mut Job) {
    measure!(j, j.count(2_000_000, 8), n => eight_to_eight(n).await);
}

pub const HERE: &[Workload] = &[
    ("roundtrip", |j| Box::pin(roundtrip(j))),
    ("roundtrip_threads", |j| Box::pin(roundtrip_threads(j))),
    ("buffered_1_1", |j| Box::pin(buffered_1_1(j))),
    ("buffered_8_8", |j| Box::pin(buffered_8_8(j))),
];

//! The mutexes are the standard library's. Tokio's documentation recommends them for code that does not await while it
//! holds one.

use std::hint::black_box;
use std::sync::{Arc, Mutex, RwLock};

use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use crate::job::{Job, Workload};

async fn one_mutex(n: usize) {
    let counter = Arc::new(Mutex::new(0));
    let tasks = TaskTracker::new();
    for _ in 0..64 {
        let counter = counter.clone();
        tasks.spawn(async move {
            for _ in 0..n / 64 {
                *counter.lock().unwrap() += 1;
            }
        });
    }
    tasks.close();
    tasks.wait().await;
}

async fn mutex_64(j: &mut Job) {
    measure!(j, j.count(10_000_000, 64), n => one_mutex(n).await);
}

/// Takes about 2 µs: it waits for one multiplication after the other.
fn work() {
    let mut x = 1u64;
    for _ in 0..2000 {
        x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407)); // or it is cut short
    }
}

async fn work_and_lock(n: usize) {
    let mutex = Arc::new(Mutex::new(()));
    let tasks = TaskTracker::new();
    for _ in 0..8 {
        let mutex = mutex.clone();
        tasks.spawn(async move {
            for _ in 0..n / 8 {
                {
                    let _lock = mutex.lock().unwrap();
                    work();
                }
                work();
            }
        });
    }
    tasks.close();
    tasks.wait().await;
}

async fn mutex_work(j: &mut Job) {
    measure!(j, j.count(100_000, 8), n => work_and_lock(n).await);
}

/// One operation in 16 writes, the others read.
async fn read_and_write(n: usize) {
    let counter = Arc::new(RwLock::new(0));
    let tasks = TaskTracker::new();
    for _ in 0..64 {
        let counter = counter.clone();
        tasks.spawn(async move {
            for i in 0..n / 64 {
                if i % 16 == 0 {
                    *counter.write().unwrap() += 1;
                } else {
                    black_box(*counter.read().unwrap());
                }
            }
        });
    }
    tasks.close();
    tasks.wait().await;
}

async fn rwmutex_64(j: &mut Job) {
    measure!(j, j.count(5_000_000, 64), n => read_and_write(n).await);
}

/// Tokio has no condition variable. Each task has a Notify, and the mutex is held only to read or to change `turn`.
async fn turns(n: usize) {
    let turn = Arc::new(Mutex::new(0));
    let changed = Arc::new([Notify::new(), Notify::new()]);
    let tasks = TaskTracker::new();
    for me in 0..2 {
        let (turn, changed) = (turn.clone(), changed.clone());
        tasks.spawn(async move {
            for _ in 0..n {
                while *turn.lock().unwrap() != me {
                    changed[me].notified().await;
                }
                *turn.lock().unwrap() = 1 - me;
                changed[1 - me].notify_one();
            }
        });
    }
    tasks.close();
    tasks.wait().await;
}

async fn condition(j: &mut Job) {
    measure!(j, j.count(500_000, 1), n => turns(n).await);
}

pub const HERE: &[Workload] = &[
    ("condition", |j| Box::pin(condition(j))),
    ("mutex_64", |j| Box::pin(mutex_64(j))),
    ("mutex_work", |j| Box::pin(mutex_work(j))),
    ("rwmutex_64", |j| Box::pin(rwmutex_64(j))),
];

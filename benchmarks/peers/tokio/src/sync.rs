use std::sync::Arc;

use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

use crate::job::{Job, Workload};

async fn one_mutex(n: usize) {
    let counter = Arc::new(Mutex::new(0));
    let tasks = TaskTracker::new();
    for _ in 0..64 {
        let counter = counter.clone();
        tasks.spawn(async move {
            for _ in 0..n / 64 {
                *counter.lock().await += 1;
            }
        });
    }
    tasks.close();
    tasks.wait().await;
}

async fn mutex_64(j: &mut Job) {
    measure!(j, j.count(10_000_000, 64), n => one_mutex(n).await);
}

pub const HERE: &[Workload] = &[("mutex_64", |j| Box::pin(mutex_64(j)))];

use tokio::task::yield_now;
use tokio_util::task::TaskTracker;

use crate::job::{Job, Workload};

async fn eight(n: usize) {
    let tasks = TaskTracker::new();
    for _ in 0..8 {
        tasks.spawn(async move {
            for _ in 0..n / 8 {
                yield_now().await;
            }
        });
    }
    tasks.close();
    tasks.wait().await;
}

async fn yields(j: &mut Job) {
    measure!(j, j.count(4_000_000, 1), n => eight(n).await);
}

pub const HERE: &[Workload] = &[("yield", |j| Box::pin(yields(j)))];

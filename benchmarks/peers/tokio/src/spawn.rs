use tokio_util::task::TaskTracker;

use crate::job::{Job, Workload};

const BATCH: usize = 1000;

async fn spawn_join(j: &mut Job) {
    measure!(j, j.count(1_000_000, 1), n => for _ in 0..n {
        tokio::spawn(async {}).await.unwrap();
    });
}

async fn fan_out(j: &mut Job) {
    let tasks = TaskTracker::new();
    tasks.close();
    measure!(j, j.count(1_000_000, 1), n => {
        for _ in 0..n {
            tasks.spawn(async {});
        }
        tasks.wait().await;
    });
}

async fn spawn_batch(j: &mut Job) {
    let mut tasks = Vec::with_capacity(BATCH);
    measure!(j, j.count(2_000_000, BATCH), n => for _ in 0..n.div_ceil(BATCH) {
        tasks.extend((0..BATCH).map(|_| tokio::spawn(async {})));
        for task in tasks.drain(..) {
            task.await.unwrap();
        }
    });
}

async fn wait_group(j: &mut Job) {
    let tasks = TaskTracker::new();
    tasks.close(); // so that wait() returns whenever no task is left
    measure!(j, j.count(2_000_000, BATCH), n => for _ in 0..n.div_ceil(BATCH) {
        for _ in 0..BATCH {
            tasks.spawn(async {});
        }
        tasks.wait().await;
    });
}

pub const HERE: &[Workload] = &[
    ("fan_out", |j| Box::pin(fan_out(j))),
    ("spawn_join", |j| Box::pin(spawn_join(j))),
    ("spawn_batch", |j| Box::pin(spawn_batch(j))),
    ("wait_group", |j| Box::pin(wait_group(j))),
];

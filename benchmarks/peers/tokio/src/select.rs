use std::hint::black_box;
use std::time::Duration;

use tokio::sync::mpsc::{channel, Receiver};
use tokio::time::timeout;

use crate::job::{Job, Workload};

fn producer() -> Receiver<usize> {
    let (tx, rx) = channel(1);
    tokio::spawn(async move { while tx.send(1).await.is_ok() {} });
    rx
}

async fn select_4(j: &mut Job) {
    let (mut a, mut b, mut c, mut d) = (producer(), producer(), producer(), producer());
    let mut sum = 0;
    measure!(j, j.count(1_000_000, 1), n => for _ in 0..n {
        sum += tokio::select! {
            v = a.recv() => v.unwrap(),
            v = b.recv() => v.unwrap(),
            v = c.recv() => v.unwrap(),
            v = d.recv() => v.unwrap(),
        };
    });
    black_box(sum);
}

/// Tokio has a function of its own for this, try_recv().
async fn select_default(j: &mut Job) {
    let (_tx, mut rx) = channel::<usize>(1);
    measure!(j, j.count(20_000_000, 1), n => for _ in 0..n {
        black_box(rx.try_recv().is_err());
    });
}

async fn select_timeout(j: &mut Job) {
    let mut rx = producer();
    let mut sum = 0;
    measure!(j, j.count(500_000, 1), n => for _ in 0..n {
        sum += timeout(Duration::from_secs(1), rx.recv()).await.expect("a value in time").unwrap();
    });
    black_box(sum);
}

pub const HERE: &[Workload] = &[
    ("select_4", |j| Box::pin(select_4(j))),
    ("select_default", |j| Box::pin(select_default(j))),
    ("select_timeout", |j| Box::pin(select_timeout(j))),
];

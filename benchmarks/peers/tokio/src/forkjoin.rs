use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;

use crate::job::{Job, Workload};

fn fib(n: usize) -> Pin<Box<dyn Future<Output = usize> + Send>> {
    Box::pin(async move {
        if n < 2 {
            return n;
        }
        let left = tokio::spawn(fib(n - 1));
        let right = fib(n - 2).await;
        left.await.unwrap() + right
    })
}

async fn forkjoin(j: &mut Job) {
    let (mut n, mut before, mut spawned) = (2, 0, 1);
    while spawned < j.count(800_000, 1) {
        (before, spawned) = (spawned, before + spawned + 1);
        n += 1;
    }
    j.start();
    black_box(fib(n).await);
    j.stop(spawned);
}

pub const HERE: &[Workload] = &[("fib", |j| Box::pin(forkjoin(j)))];

use std::future::Future;
use std::pin::Pin;

use tokio::sync::mpsc::{channel, Sender};

use crate::job::{Job, Workload};

fn skynet(up: Sender<u64>, first: u64, leaves: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        if leaves == 1 {
            up.send(first).await.unwrap();
            return;
        }
        let (tx, mut rx) = channel(10);
        for i in 0..10 {
            tokio::spawn(skynet(tx.clone(), first + i * (leaves / 10), leaves / 10));
        }
        let mut sum = 0;
        for _ in 0..10 {
            sum += rx.recv().await.unwrap();
        }
        up.send(sum).await.unwrap();
    })
}

async fn tree(j: &mut Job) {
    let mut leaves = 10;
    while leaves * 10 <= j.count(1_000_000, 1) as u64 {
        leaves *= 10;
    }
    j.start();
    let (tx, mut rx) = channel(1);
    tokio::spawn(skynet(tx, 0, leaves));
    assert_eq!(rx.recv().await, Some(leaves * (leaves - 1) / 2));
    j.stop(leaves as usize);
}

pub const HERE: &[Workload] = &[("skynet", |j| Box::pin(tree(j)))];

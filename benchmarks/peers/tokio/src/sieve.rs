//! A chain of tasks. Each channel holds one value, since Tokio has no unbuffered ones.

use tokio::sync::mpsc::{channel, Receiver, Sender};

use crate::job::{Job, Workload};

async fn generate(out: Sender<usize>) {
    for i in 2.. {
        if out.send(i).await.is_err() {
            break;
        }
    }
}

async fn filter(mut from: Receiver<usize>, to: Sender<usize>, prime: usize) {
    while let Some(v) = from.recv().await {
        if v % prime != 0 && to.send(v).await.is_err() {
            break;
        }
    }
}

/// Returns how many values go through the channels, all together, until the last of that many primes is known.
fn hops(primes: usize) -> usize {
    let mut known = Vec::new();
    let mut n = 0;
    for i in 2.. {
        if known.len() == primes {
            break;
        }
        match known.iter().position(|p| i % p == 0) {
            Some(at) => n += at + 1,
            None => {
                n += known.len() + 1;
                known.push(i);
            }
        }
    }
    n
}

async fn sieve(j: &mut Job) {
    let primes = 1000;
    let n = hops(primes);
    j.start();
    let (tx, mut rx) = channel(1);
    tokio::spawn(generate(tx));
    for _ in 1..primes {
        let prime = rx.recv().await.unwrap();
        let (tx, next) = channel(1);
        tokio::spawn(filter(rx, tx, prime));
        rx = next;
    }
    rx.recv().await.unwrap();
    j.stop(n);
}

pub const HERE: &[Workload] = &[("sieve", |j| Box::pin(sieve(j)))];

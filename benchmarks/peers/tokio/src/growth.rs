//! What one operation costs among 10^3 to 10^6 tasks or timers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::job::{Job, Random, Workload};
use crate::timers::{far_timers, HOUR};

#[derive(Default)]
struct Turns {
    begun: AtomicUsize,
    done: AtomicUsize,
    start: AtomicBool,
    end: AtomicBool,
}

async fn take_turns(j: &mut Job, tasks: usize) {
    let each = j.count(8_000_000, tasks) / tasks;
    let turns = Arc::new(Turns::default());
    let all = TaskTracker::new();
    for _ in 0..tasks {
        let turns = turns.clone();
        all.spawn(async move {
            turns.begun.fetch_add(1, Relaxed);
            while !turns.start.load(Relaxed) {
                yield_now().await;
            }
            for _ in 0..each {
                yield_now().await;
            }
            turns.done.fetch_add(1, Relaxed);
            while !turns.end.load(Relaxed) {
                yield_now().await;
            }
        });
    }
    while turns.begun.load(Relaxed) < tasks {
        yield_now().await;
    }
    j.start();
    turns.start.store(true, Relaxed);
    while turns.done.load(Relaxed) < tasks {
        yield_now().await;
    }
    j.stop(tasks * (each + 1));
    turns.end.store(true, Relaxed);
    all.close();
    all.wait().await;
}

async fn ask(j: &mut Job, tasks: usize) {
    let begun = Arc::new(AtomicUsize::new(0));
    let (answer, mut answers) = mpsc::channel(1);
    let mut questions = Vec::with_capacity(tasks);
    for _ in 0..tasks {
        let (question, mut asked) = mpsc::channel(1);
        let (begun, answer) = (begun.clone(), answer.clone());
        questions.push(question);
        tokio::spawn(async move {
            begun.fetch_add(1, Relaxed);
            while let Some(v) = asked.recv().await {
                answer.send(v).await.unwrap();
            }
        });
    }
    while begun.load(Relaxed) < tasks {
        yield_now().await;
    }
    yield_now().await; // so that the last ones wait
    Random(1).shuffle(&mut questions);
    measure!(j, j.count(1_000_000, 1), n => for i in 0..n {
        questions[i % tasks].send(1).await.unwrap();
        answers.recv().await.unwrap();
    });
}

async fn reset_timers(j: &mut Job, timers: usize) {
    let mut random = Random(1);
    let mut all = far_timers(timers).await;
    random.shuffle(&mut all);
    measure!(j, j.count(2_000_000, 1), n => for i in 0..n {
        let due = Instant::now() + HOUR + Duration::from_micros(random.below(1_000_000));
        all[i % timers].as_mut().reset(due);
    });
}

pub const HERE: &[Workload] = &[
    ("yield_1k", |j| Box::pin(take_turns(j, 1000))),
    ("yield_10k", |j| Box::pin(take_turns(j, 10_000))),
    ("yield_100k", |j| Box::pin(take_turns(j, 100_000))),
    ("yield_1m", |j| Box::pin(take_turns(j, 1_000_000))),
    ("ask_1k", |j| Box::pin(ask(j, 1000))),
    ("ask_10k", |j| Box::pin(ask(j, 10_000))),
    ("ask_100k", |j| Box::pin(ask(j, 100_000))),
    ("ask_1m", |j| Box::pin(ask(j, 1_000_000))),
    ("reset_1k", |j| Box::pin(reset_timers(j, 1000))),
    ("reset_10k", |j| Box::pin(reset_timers(j, 10_000))),
    ("reset_100k", |j| Box::pin(reset_timers(j, 100_000))),
    ("reset_1m", |j| Box::pin(reset_timers(j, 1_000_000))),
];

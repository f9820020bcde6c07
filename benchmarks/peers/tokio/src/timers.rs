//! Tokio registers a Sleep as a timer when it is polled for the first time. A workload that needs a registered timer
//! for which nobody waits polls it once (arm).

use std::future::{poll_fn, Future};
use std::hint::black_box;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{sleep, Sleep};
use tokio_util::task::TaskTracker;

use crate::job::{Job, Random, Workload};

pub const HOUR: Duration = Duration::from_secs(3600);

async fn arm(mut timer: Pin<&mut Sleep>) {
    poll_fn(|cx| {
        assert!(timer.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

async fn on_each_proc<F: Future<Output = ()> + Send + 'static>(procs: usize, work: impl Fn() -> F) {
    let tasks = TaskTracker::new();
    for _ in 0..procs {
        tasks.spawn(work());
    }
    tasks.close();
    tasks.wait().await;
}

/// The cost of a timeout whose operation is ready at once: the timer is dropped before it is registered.
async fn create_stop(j: &mut Job) {
    let procs = j.procs;
    measure!(j, j.count(2_000_000, procs), n => on_each_proc(procs, || async move {
        for _ in 0..n / procs {
            drop(black_box(sleep(HOUR)));
        }
    }).await);
}

async fn after_func_stop(j: &mut Job) {
    let procs = j.procs;
    measure!(j, j.count(2_000_000, procs), n => on_each_proc(procs, || async move {
        for _ in 0..n / procs {
            let timer = std::pin::pin!(sleep(HOUR));
            arm(timer).await;
        }
    }).await);
}

/// Resets a timer that is registered: the first reset() of any other one would register it.
async fn reset(j: &mut Job) {
    let procs = j.procs;
    measure!(j, j.count(5_000_000, procs), n => on_each_proc(procs, || async move {
        let mut timer = std::pin::pin!(sleep(HOUR));
        arm(timer.as_mut()).await;
        for _ in 0..n / procs {
            timer.as_mut().reset(tokio::time::Instant::now() + HOUR);
        }
    }).await);
}

fn far(random: &mut Random) -> Duration {
    HOUR + Duration::from_micros(random.below(1_000_000))
}

pub async fn far_timers(n: usize) -> Vec<Pin<Box<Sleep>>> {
    let mut random = Random(1);
    let mut timers = Vec::with_capacity(n);
    for _ in 0..n {
        let mut timer = Box::pin(sleep(far(&mut random)));
        arm(timer.as_mut()).await;
        timers.push(timer);
    }
    timers
}

async fn add_1m(j: &mut Job) {
    let n = j.count(1_000_000, 1);
    let _others = far_timers(n).await;
    j.start();
    let _added = far_timers(n).await;
    j.stop(n);
}

/// The timers' memory is freed later, as in the other programs.
async fn stop_1m(j: &mut Job) {
    let n = j.count(1_000_000, 1);
    let mut random = Random(1);
    let mut timers = Vec::with_capacity(n);
    for _ in 0..n {
        let mut timer = Box::pin(Some(sleep(far(&mut random))));
        arm(timer.as_mut().as_pin_mut().unwrap()).await;
        timers.push(timer);
    }
    Random(2).shuffle(&mut timers);
    j.start();
    for timer in &mut timers {
        timer.set(None);
    }
    j.stop(n);
}

/// In Tokio, a function to be called later is a task that sleeps first.
async fn after_func_1m(j: &mut Job) {
    let n = j.count_in_memory(1_000_000, 12 * 1024);
    let mut random = Random(3);
    let tasks = TaskTracker::new();
    tasks.close();
    j.start();
    for _ in 0..n {
        tasks.spawn(sleep(Duration::from_nanos(random.below(1_000_000))));
    }
    tasks.wait().await;
    j.stop(n);
}

async fn sleep_1m(j: &mut Job) {
    let n = j.count_in_memory(1_000_000, 12 * 1024);
    let tasks = TaskTracker::new();
    tasks.close();
    j.start();
    for _ in 0..n {
        tasks.spawn(sleep(Duration::from_millis(100)));
    }
    tasks.wait().await;
    j.stop(n);
}

async fn sleepers(j: &mut Job) {
    const N: usize = 10_000;
    let seconds = (4.0 * j.scale).max(2.0) as u64;
    let stop = Arc::new(AtomicBool::new(false));
    let tasks = TaskTracker::new();
    for i in 0..N {
        let stop = stop.clone();
        tasks.spawn(async move {
            sleep(i as u32 * Duration::from_micros(100)).await;
            while !stop.load(Ordering::Relaxed) {
                sleep(Duration::from_secs(1)).await;
            }
        });
    }
    sleep(Duration::from_millis(1500)).await;
    j.start();
    sleep(Duration::from_secs(seconds)).await;
    j.stop(N * seconds as usize);
    stop.store(true, Ordering::Relaxed);
    tasks.close();
    tasks.wait().await;
}

async fn sleepers_short(j: &mut Job) {
    const N: u32 = 1000;
    let sleeps = Arc::new(AtomicUsize::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for i in 0..N {
        let (sleeps, stop) = (sleeps.clone(), stop.clone());
        let d = Duration::from_millis(5) + i * Duration::from_micros(7);
        tasks.spawn(async move {
            let mut late = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let start = Instant::now();
                sleep(d).await;
                sleeps.fetch_add(1, Ordering::Relaxed);
                if i % 10 == 0 {
                    late.push(start.elapsed() - d);
                }
            }
            late
        });
    }
    sleep(Duration::from_millis(200)).await;
    j.start();
    let before = sleeps.load(Ordering::Relaxed);
    sleep(j.period()).await;
    j.stop(sleeps.load(Ordering::Relaxed) - before);
    stop.store(true, Ordering::Relaxed);
    j.percentiles(&mut tasks.join_all().await.concat());
}

async fn lateness(j: &mut Job, us: u64) {
    let d = Duration::from_micros(us);
    let mut late = Vec::new();
    j.start();
    let end = Instant::now() + j.period();
    while Instant::now() < end {
        let start = Instant::now();
        sleep(d).await;
        late.push(start.elapsed() - d);
    }
    j.stop(late.len());
    j.report(&mut late);
}

pub const HERE: &[Workload] = &[
    ("late_50us", |j| Box::pin(lateness(j, 50))),
    ("late_200us", |j| Box::pin(lateness(j, 200))),
    ("late_1ms", |j| Box::pin(lateness(j, 1000))),
    ("late_5ms", |j| Box::pin(lateness(j, 5000))),
    ("timer_create_stop", |j| Box::pin(create_stop(j))),
    ("timer_reset", |j| Box::pin(reset(j))),
    ("after_func_stop", |j| Box::pin(after_func_stop(j))),
    ("after_func_reset", |j| Box::pin(reset(j))),
    ("timer_add_1m", |j| Box::pin(add_1m(j))),
    ("timer_stop_1m", |j| Box::pin(stop_1m(j))),
    ("after_func_1m", |j| Box::pin(after_func_1m(j))),
    ("sleep_1m", |j| Box::pin(sleep_1m(j))),
    ("sleepers", |j| Box::pin(sleepers(j))),
    ("sleepers_short", |j| Box::pin(sleepers_short(j))),
];

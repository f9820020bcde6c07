use std::future::Future;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::job::{resident_bytes, Job, Workload};

const MESSAGE: usize = 64;
const SERVER_BUFFER: usize = 1024; // a server does not know how long messages are

async fn answer(mut stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut buffer = [0; SERVER_BUFFER];
    while let Ok(n @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..n]).await.is_err() {
            break;
        }
    }
}

/// Starts a server on a free port that sends back what it receives, with one task for each connection.
pub async fn start_echo_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(answer(stream));
        }
    });
    address
}

pub async fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends a message and reads it back.
pub async fn echo(stream: &mut TcpStream) {
    let mut buffer = [0; MESSAGE];
    stream.write_all(&buffer).await.unwrap();
    stream.read_exact(&mut buffer).await.unwrap();
}

/// Sends something on a stream, reads the answer, and returns the stream.
pub trait Exchange: Fn(TcpStream) -> Self::Future + Copy + Send + 'static {
    type Future: Future<Output = TcpStream> + Send;
}
impl<F: Fn(TcpStream) -> R + Copy + Send + 'static, R: Future<Output = TcpStream> + Send> Exchange for F {
    type Future = R;
}

async fn talk_once(streams: &mut Vec<TcpStream>, n: usize, exchange: impl Exchange) -> Vec<Duration> {
    let each = (n / streams.len()).max(1);
    // All tasks count from the same start, so that the wait for a task's first turn counts.
    let (gate, start) = watch::channel(None);
    let tasks: Vec<_> = streams
        .drain(..)
        .map(|mut stream| {
            let mut start = start.clone();
            tokio::spawn(async move {
                let mut times = Vec::new();
                let mut last = start.wait_for(Option::is_some).await.unwrap().unwrap();
                for _ in 0..each {
                    stream = exchange(stream).await;
                    let now = Instant::now();
                    times.push(now - last);
                    last = now;
                }
                (stream, times)
            })
        })
        .collect();
    gate.send(Some(Instant::now())).unwrap();
    let mut all = Vec::new();
    for task in tasks {
        let (stream, times) = task.await.unwrap();
        streams.push(stream);
        all.extend(times);
    }
    all
}

/// Calls `exchange` on all streams at once, `full` times in all at scale 1. Measures the time for each call, and the
/// percentiles of how long one takes.
pub async fn talk(j: &mut Job, streams: &mut Vec<TcpStream>, full: usize, exchange: impl Exchange) {
    let mut times = Vec::new();
    measure!(j, j.count(full, streams.len()), n => {
        times.clear(); // drops the times of the warm-up
        times.extend(talk_once(streams, n, exchange).await);
    });
    j.percentiles(&mut times);
}

pub async fn connect_all(server: SocketAddr, n: usize) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..n {
        streams.push(connect(server).await);
    }
    streams
}

async fn echo_on(j: &mut Job, connections: usize, messages: usize) {
    let before = resident_bytes();
    let mut streams = connect_all(start_echo_server().await, Job::connections(connections)).await;
    sleep(Duration::from_millis(50)).await; // until all are accepted
    j.note(
        "bytes_per_connection",
        (resident_bytes() - before) as f64 / streams.len() as f64,
    );
    let exchange = |mut stream| async {
        echo(&mut stream).await;
        stream
    };
    talk(j, &mut streams, messages, exchange).await;
}

pub const HERE: &[Workload] = &[
    ("echo", |j| Box::pin(echo_on(j, 1, 50_000))),
    ("echo_64", |j| Box::pin(echo_on(j, 64, 50_000))),
    ("echo_1k", |j| Box::pin(echo_on(j, 1000, 100_000))),
    ("echo_10k", |j| Box::pin(echo_on(j, 10_000, 200_000))),
];

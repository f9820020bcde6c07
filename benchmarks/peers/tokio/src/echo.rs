use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::job::{Job, Workload};

const MESSAGE: usize = 64;

async fn answer(mut stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut buffer = [0; MESSAGE];
    while let Ok(n @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..n]).await.is_err() {
            break;
        }
    }
}

/// Listens on a free port and answers every connection with what it sends, a task each.
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

/// A message there and back.
pub async fn echo(stream: &mut TcpStream) {
    let mut buffer = [0; MESSAGE];
    stream.write_all(&buffer).await.unwrap();
    stream.read_exact(&mut buffer).await.unwrap();
}

async fn talk(streams: &mut Vec<TcpStream>, n: usize) {
    let each = n / streams.len();
    let tasks: Vec<_> = streams
        .drain(..)
        .map(|mut stream| {
            tokio::spawn(async move {
                for _ in 0..each {
                    echo(&mut stream).await;
                }
                stream
            })
        })
        .collect();
    for task in tasks {
        streams.push(task.await.unwrap());
    }
}

async fn echo_on(j: &mut Job, connections: usize) {
    let server = start_echo_server().await;
    let mut streams = Vec::new();
    for _ in 0..connections {
        streams.push(connect(server).await);
    }
    measure!(j, j.count(50_000, connections), n => talk(&mut streams, n).await);
}

pub const HERE: &[Workload] = &[
    ("echo", |j| Box::pin(echo_on(j, 1))),
    ("echo_64", |j| Box::pin(echo_on(j, 64))),
];

//! hyper's server, and clients that send the bytes of a prepared request.

use std::convert::Infallible;
use std::net::SocketAddr;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::echo::{connect_all, talk};
use crate::job::{Job, Workload};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
const BODY: &[u8] = b"Hello, World!\n";

async fn answer(_: Request<hyper::body::Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(BODY)));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}

async fn start_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)));
        }
    });
    address
}

fn is_complete(answer: &[u8]) -> bool {
    answer.ends_with(BODY) && std::str::from_utf8(answer).is_ok_and(|text| text.contains("\r\n\r\n"))
}

async fn get(mut stream: TcpStream) -> TcpStream {
    stream.write_all(REQUEST).await.unwrap();
    let mut buffer = [0; 1024];
    let mut have = 0;
    loop {
        let n = stream.read(&mut buffer[have..]).await.unwrap();
        assert!(n > 0, "no answer");
        have += n;
        if is_complete(&buffer[..have]) {
            return stream;
        }
    }
}

async fn http_on(j: &mut Job, connections: usize, requests: usize) {
    let mut streams = connect_all(start_server().await, Job::connections(connections)).await;
    talk(j, &mut streams, requests, get).await;
}

pub const HERE: &[Workload] = &[
    ("http", |j| Box::pin(http_on(j, 1, 50_000))),
    ("http_64", |j| Box::pin(http_on(j, 64, 50_000))),
    ("http_1k", |j| Box::pin(http_on(j, 1000, 100_000))),
    ("http_10k", |j| Box::pin(http_on(j, 10_000, 200_000))),
];

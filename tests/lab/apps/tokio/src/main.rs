// SPDX-License-Identifier: BSD-3-Clause
// main.rs - tokio's way to the network: runtime_client HOST; the task is in runtime_client.py
use std::io::{Error, ErrorKind, Result};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const COUNT: usize = 8;
const SIZE: usize = 1_000_000;

fn pattern(number: usize) -> Vec<u8> {
    (0..200_000 + number).map(|i| (i % 251) as u8).collect()
}

async fn echoed(host: String, number: usize) -> Result<()> {
    let (mut reader, mut writer) = TcpStream::connect((host.as_str(), 7)).await?.into_split();
    let sender = tokio::spawn(async move {
        writer.write_all(&pattern(number)).await?;
        writer.shutdown().await
    });
    let mut data = Vec::new();
    reader.read_to_end(&mut data).await?;
    sender.await??;
    if data != pattern(number) {
        let what = format!("connection {}: {} other bytes", number, data.len());
        return Err(Error::new(ErrorKind::InvalidData, what));
    }
    Ok(())
}

async fn run(host: String) -> Result<()> {
    let start = |number| tokio::spawn(echoed(host.clone(), number));
    let tasks: Vec<_> = (0..COUNT).map(start).collect();
    for task in tasks {
        task.await??;
    }
    println!("{} done, {} up", COUNT, SIZE);
    match TcpStream::connect((host.as_str(), 9999)).await {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => println!("refused"),
        Err(error) => return Err(error),
        Ok(_) => return Err(Error::new(ErrorKind::Other, "not refused")),
    }
    Ok(())
}

fn main() -> Result<()> {
    let host = std::env::args().nth(1).expect("usage: runtime_client HOST");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(20), run(host)).await? })
}

//! quinn: a `Runtime` with our timers, and the sockets of quinn's runtime for tokio. Here the test controls the clock.

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::{
    AsyncTimer, AsyncUdpSocket, ClientConfig, ConnectionError, Endpoint, EndpointConfig, Runtime,
    ServerConfig, TokioRuntime,
};
use waterwheel::{Duration, ManualClock, Sleep, Timer};

use crate::support::{eventually, ms};

#[derive(Debug)]
pub(crate) struct Waterwheel(Timer);

impl Runtime for Waterwheel {
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(QuicTimer(self.0.sleep_until(deadline.into())))
    }

    fn now(&self) -> Instant {
        self.0.now().into_std()
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        TokioRuntime.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        TokioRuntime.wrap_udp_socket(socket)
    }
}

#[derive(Debug)]
struct QuicTimer(Sleep);

impl AsyncTimer for QuicTimer {
    fn reset(mut self: Pin<&mut Self>, deadline: Instant) {
        self.0.set_deadline(deadline.into());
    }

    fn poll(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<()> {
        Pin::new(&mut self.0).poll(context)
    }
}

/// The default of quinn.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn quic_echoes_and_its_idle_timeout_comes_by_our_clock() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).start()?;
    let (server_config, client_config) = configs()?;
    // The server uses real time, so it is the client that finds the connection idle.
    let server = endpoint(Some(server_config), &Timer::current())?;
    let mut client = endpoint(None, &timer)?;
    client.set_default_client_config(client_config);

    let address = server.local_addr()?;
    tokio::spawn(echo(server));
    let connection = client.connect(address, "localhost")?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(b"over there").await?;
    send.finish()?;
    assert_eq!(receive.read_to_end(100).await?, b"over there");

    clock.advance(IDLE_TIMEOUT / 2);
    assert_eq!(connection.close_reason(), None);
    // Advance more than once: a packet in flight restarts the timeout.
    eventually("an idle timeout", || {
        clock.advance(IDLE_TIMEOUT);
        connection.close_reason().is_some()
    });
    assert_eq!(connection.close_reason(), Some(ConnectionError::TimedOut));
    Ok(())
}

#[tokio::test]
async fn a_reset_moves_a_timer_of_quinns() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new();
    let runtime = Waterwheel(Timer::builder().clock(clock.clone()).start()?);
    let mut timer = runtime.new_timer(runtime.now() + ms(10));
    let context = &mut Context::from_waker(Waker::noop());
    assert!(timer.as_mut().poll(context).is_pending());
    timer.as_mut().reset(runtime.now() + ms(30));
    clock.advance(ms(29));
    assert!(timer.as_mut().poll(context).is_pending());
    clock.advance(ms(1));
    assert!(timer.as_mut().poll(context).is_ready());
    Ok(())
}

async fn echo(server: Endpoint) -> Result<(), Box<dyn Error + Send + Sync>> {
    while let Some(incoming) = server.accept().await {
        let connection = incoming.await?;
        let (mut send, mut receive) = connection.accept_bi().await?;
        send.write_all(&receive.read_to_end(100).await?).await?;
        send.finish()?;
        connection.closed().await;
    }
    Ok(())
}

fn endpoint(config: Option<ServerConfig>, timer: &Timer) -> io::Result<Endpoint> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let runtime = Arc::new(Waterwheel(timer.clone()));
    Endpoint::new(EndpointConfig::default(), config, socket, runtime)
}

/// A certificate made for this run, and a client that trusts it.
fn configs() -> Result<(ServerConfig, ClientConfig), Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let certificate = made.cert.der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone())?;
    Ok((
        ServerConfig::with_single_cert(vec![certificate], key.into())?,
        ClientConfig::with_root_certificates(Arc::new(roots))?,
    ))
}

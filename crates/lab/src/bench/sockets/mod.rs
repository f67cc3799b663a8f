//! Sockets to assistants through the relay in a separate process, compared with the same number directly to the
//! simulated assistants.
//!
//! The relay uses the servers' SSH connections, as in production.

mod client;

use std::time::{Duration, Instant};

use base::id::{InstanceId, UserId};
use base::{Error, Result};
use fleet::{instance, tenant};
use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use people::{session, user};
use queue::audit::By;
use tidepool::config::Values;
use tidepool::serve::allow_many_files;

use super::cost::{cpu, memory};
use super::serving::Serving;
use super::site::Site;
use super::sweep::{self, Simulated};
use super::{millis, percentile, proof, report};
use client::{Seat, Socket, Way};

const IDLE: usize = 2_000;
const TALKING: usize = 200;
/// The limit for one person.
const OF_A_USER: usize = 16;
const ON_A_SERVER: usize = 10;
/// How long the sockets stay open.
const STRAIGHT: Duration = Duration::from_secs(60);
const RELAYED: Duration = Duration::from_secs(300);
const STORM: Duration = Duration::from_secs(60);
/// How many sockets are opened concurrently, before anything is measured.
const AT_ONCE: usize = 32;

pub async fn run(values: &Values) -> Result<()> {
    allow_many_files();
    let site = Site::open(values).await?;
    let hosts = Simulated::start()?;
    let seats = seats(&site, hosts.port).await?;

    let one = instance::show(site.app(), &InstanceId::named(sweep::instance(0, 0))).await?.instance;
    let server = fleet::server::find(site.app(), &one.server_id).await?;
    let host = fleet::host::reach(site.app(), &server).await?;
    proof::run("a simulated server", &host, sweep::port(0), &tenant::tenant(&one)?).await?;
    site.app().hosts.close().await;

    let straight = Way::Straight(hosts.straight);
    let floor = talk(open_all(&straight, &seats).await?, &seats, STRAIGHT).await;
    print("straight", &floor, STRAIGHT, String::new());

    let listen = super::start::free_address()?;
    let settings = [("TIDEPOOL_ROLES", "employee".to_owned()), ("TIDEPOOL_EMPLOYEE_LISTEN", listen.clone())];
    let ready = format!("http://{listen}/readyz");
    let platform = Serving::start(&site, &settings, &ready).await?;
    let before = memory(platform.pid())?;
    let relay = Way::Relay { http: remote::http::client()?, listen };
    let sockets = open_all(&relay, &seats).await?;
    let each = (memory(platform.pid())?.saturating_sub(before)) as f64 / seats.len() as f64;
    let spent = cpu(&[platform.pid()])?;
    let reached = talk(sockets, &seats, RELAYED).await;
    let spent = cpu(&[platform.pid()])? - spent;
    let later = (memory(platform.pid())?.saturating_sub(before)) as f64 / seats.len() as f64;
    let added = (percentile(&reached.took, 0.99).as_secs_f64() - percentile(&floor.took, 0.99).as_secs_f64()) * 1e3;
    let share = spent.as_secs_f64() / RELAYED.as_secs_f64() * 100.0;
    let beside = format!("p99 {added:+.2} ms beside straight (goal 2 ms, none dropped); {share:.1} % of a core");
    print("relay", &reached, RELAYED, beside);
    report(
        "memory of a socket over the relay",
        format!("{each:.1} KiB, {later:.1} after {} s", RELAYED.as_secs()),
        "goal 40 KB; SSH connections are in it",
    );

    // All clients reconnect at once after the process was killed.
    drop(platform);
    let platform = Serving::start(&site, &settings, &ready).await?;
    let began = Instant::now();
    let back = join_all(seats.iter().map(|seat| client::open_at_last(&relay, seat, STORM))).await;
    let took = began.elapsed();
    let live = back.iter().filter(|socket| socket.is_ok()).count();
    report(
        &format!("{} sockets come back at once", seats.len()),
        format!("{live} live after {:.1} s", took.as_secs_f64()),
        "goal 10 s; from the first answer of a platform that was killed",
    );
    drop(platform);
    Ok(())
}

/// Creates servers, instances and employees, and assigns the sockets to them. All sockets of an instance receive its
/// messages, so an instance has either idle sockets or a talking one.
async fn seats(site: &Site, port: u16) -> Result<Vec<Seat>> {
    let idle = IDLE.div_ceil(OF_A_USER);
    let people = idle + TALKING;
    sweep::fill(site, people.div_ceil(ON_A_SERVER), port).await?;
    let by = By::system();
    let mut seats = vec![];
    for (number, employee) in site.employees(people).await?.into_iter().enumerate() {
        let (server, place) = (number / ON_A_SERVER, number % ON_A_SERVER);
        let id = InstanceId::named(sweep::instance(server, place));
        instance::assign(site.app(), &by, &id, Some(&UserId::named(employee.id.as_str()))).await?;
        let account = user::find(site.app(), &employee.id).await?;
        let token = session::open_employee(site.app(), account, jiff::Timestamp::now())?.token;
        let talks = number >= idle;
        let sockets = if talks { 1 } else { OF_A_USER.min(IDLE - number * OF_A_USER) };
        seats.extend(vec![Seat { server, place, token, talks }; sockets]);
    }
    Ok(seats)
}

async fn open_all(way: &Way, seats: &[Seat]) -> Result<Vec<Socket>> {
    let opening = seats.iter().map(|seat| client::open(way, seat));
    stream::iter(opening).buffered(AT_ONCE).collect::<Vec<_>>().await.into_iter().collect()
}

struct Talked {
    /// Sorted.
    took: Vec<Duration>,
    dropped: Vec<Error>,
}

async fn talk(sockets: Vec<Socket>, seats: &[Seat], time: Duration) -> Talked {
    let end = Instant::now() + time;
    let staying =
        sockets.into_iter().zip(seats).map(|(socket, seat)| tokio::spawn(client::stay(socket, seat.clone(), end)));
    let mut talked = Talked { took: vec![], dropped: vec![] };
    for stayed in join_all(staying.collect::<Vec<_>>()).await {
        match stayed.map_err(Error::internal).and_then(|stayed| stayed) {
            Ok(took) => talked.took.extend(took),
            Err(error) => talked.dropped.push(error),
        }
    }
    talked.took.sort();
    talked
}

fn print(way: &str, talked: &Talked, time: Duration, beside: String) {
    let (p50, p99) = (percentile(&talked.took, 0.5), percentile(&talked.took, 0.99));
    report(
        &format!("{IDLE} idle, {TALKING} talking sockets, {way}"),
        format!("p50 {}, p99 {}", millis(p50), millis(p99)),
        format!("{} answers in {} s, {} dropped; {beside}", talked.took.len(), time.as_secs(), talked.dropped.len()),
    );
    if let Some(error) = talked.dropped.first() {
        println!("  the first that was dropped: {error:?}");
    }
}

//! Asks a server about all its instances in one round trip, and all servers of the fleet concurrently. An unreachable
//! server does not delay the others.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use base::id::{InstanceId, ServerId};
use base::{Page, Result, Sort};
use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use openclaw::Layout;
use openclaw::sweep::{self, Limits, Mark, Sweep, Target};
use remote::host::{Command, Host, home};
use store::cell::{self, Cell};
use store::instance::{self, Instance};
use store::instance_health::{self, InstanceHealth};
use store::server::{self, Server};
use store::task;

use crate::assistant::isolation;
use crate::{App, host, tenant};

/// How many servers are asked at the same time.
const AT_ONCE: usize = 64;
/// Timeout of one server for all its instances; its script asks about eight of them at a time.
const SERVER: Duration = Duration::from_secs(120);
/// Measuring a home reads every file in it, so it is done at most this often.
const MEASURED: SignedDuration = SignedDuration::from_mins(30);

/// The limits of a sweep that reads no logs.
pub fn brief() -> Limits {
    Limits { log_bytes: 0, journal: Duration::from_secs(1), instance: Duration::from_secs(15) }
}

/// An active server with its instances.
pub struct Post {
    pub server: Server,
    pub instances: Vec<Member>,
}

/// An instance with what was recorded about it before.
#[derive(Clone)]
pub struct Member {
    pub instance: Instance,
    pub known: Option<InstanceHealth>,
    pub cell: Option<Cell>,
    /// A task is working on it, or is about to.
    pub busy: bool,
}

impl Member {
    /// Whether it is on its server, and not only in the records.
    pub fn is_there(&self) -> bool {
        self.instance.is_on_server()
    }

    pub fn mark(&self) -> Mark {
        self.known.as_ref().map_or_else(Mark::default, |known| Mark {
            inode: known.log_inode as u64,
            offset: u64::try_from(known.log_offset).unwrap_or(0),
        })
    }
}

/// Every active server with its instances.
pub async fn fleet(app: &App) -> Result<Vec<Post>> {
    let sort = Sort { column: "id", descending: false };
    let servers = server::list(&app.db, None, Some(server::Status::Active), sort, Page::ALL).await?.list;
    let mut known: HashMap<InstanceId, InstanceHealth> =
        instance_health::all(&app.db).await?.into_iter().map(|h| (h.instance_id.clone(), h)).collect();
    let mut cells: HashMap<InstanceId, Cell> =
        cell::all_live(&app.db).await?.into_iter().map(|cell| (cell.instance_id.clone(), cell)).collect();
    let busy: HashSet<InstanceId> = task::busy_instances(&app.db).await?.into_iter().collect();
    let mut by_server: HashMap<ServerId, Vec<Member>> = HashMap::new();
    for instance in instance::all_live(&app.db).await? {
        let member = Member {
            known: known.remove(&instance.id),
            cell: cells.remove(&instance.id),
            busy: busy.contains(&instance.id),
            instance,
        };
        by_server.entry(member.instance.server_id.clone()).or_default().push(member);
    }
    let post = |server: Server| Post { instances: by_server.remove(&server.id).unwrap_or_default(), server };
    Ok(servers.into_iter().map(post).collect())
}

/// Runs `each` for every server, concurrently.
pub async fn everywhere<T: Send, F, R>(app: &Arc<App>, posts: Vec<Post>, each: F) -> Vec<T>
where
    F: Fn(Arc<App>, Post) -> R + Copy + Send,
    R: Future<Output = T> + Send,
{
    stream::iter(posts).map(|post| each(app.clone(), post)).buffer_unordered(AT_ONCE).collect().await
}

/// Where the reading of the instances' logs begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Where the last scan ended.
    Scan,
    /// As far before the log's end as the limits allow, regardless of what a scan has read.
    End,
}

/// A server's answers about its instances.
pub struct Looked {
    pub host: Host,
    pub sweep: Sweep,
    /// For each instance of the post, its number in the sweep.
    places: Vec<Option<usize>>,
}

impl Post {
    /// The records of its instances.
    pub fn all(&self) -> Vec<Instance> {
        self.instances.iter().map(|member| member.instance.clone()).collect()
    }
}

impl Looked {
    /// The Unix users of the instances that no task is working on, by the instances' number in the post.
    pub fn users(&self, post: &Post) -> Vec<(usize, isolation::Seen)> {
        let idle = post.instances.iter().enumerate().filter(|(_, member)| !member.busy);
        let seen = |answer: &sweep::Answer| isolation::Seen {
            login: self.host.user().to_owned(),
            home_owner: answer.home_owner.clone(),
            unit_user: answer.unit.user.clone(),
        };
        idle.filter_map(|(number, _)| {
            self.of(number).filter(|answer| answer.complete).map(|answer| (number, seen(answer)))
        })
        .collect()
    }

    pub fn of(&self, number: usize) -> Option<&sweep::Answer> {
        let place = (*self.places.get(number)?)?;
        self.sweep.instances.get(place)?.as_ref()
    }
}

/// Asks a server about all its instances.
pub async fn look(app: &App, post: &Post, limits: &Limits, since: Since) -> Result<Looked> {
    let host = host::reach(app, &post.server).await?;
    let (mut targets, mut places) = (vec![], vec![]);
    let mut own_home: Option<String> = None;
    for member in &post.instances {
        if !member.is_there() {
            places.push(None);
            continue;
        }
        if member.instance.home.is_none() && own_home.is_none() {
            own_home = Some(host.home().await?);
        }
        match target(member, own_home.as_deref(), since, app.clock.now()) {
            Ok(target) => {
                places.push(Some(targets.len()));
                targets.push(target);
            }
            // An invalid record is skipped; the other instances of the server are still checked.
            Err(error) => {
                tracing::warn!(instance = %member.instance.id, %error, "it cannot be looked at");
                places.push(None);
            }
        }
    }
    let script = sweep::script(&targets, &[&post.server.base_dir], limits, home::SHELL)?;
    let command = Command::long_script("sweep", script).keep(limits.output_bytes(targets.len())).limit(SERVER);
    let output = host.run(&command).await?;
    Ok(Looked { sweep: sweep::parse(&output.stdout, &targets), host, places })
}

fn target(member: &Member, own_home: Option<&str>, since: Since, now: Timestamp) -> Result<Target> {
    let instance = &member.instance;
    let home = instance.home.as_deref().or(own_home).unwrap_or("/root");
    let home = home.trim_end_matches('/');
    Ok(Target {
        runner: tenant::runner(instance)?,
        port: instance.gateway_port,
        home: home.to_owned(),
        config_path: Layout::of(home).config_path(),
        state_dir: Layout::of(home).state_dir(),
        log_file: Layout::of(home).log_file(),
        mark: match since {
            Since::Scan => member.mark(),
            Since::End => Mark::default(),
        },
        measure: member
            .cell
            .as_ref()
            .is_none_or(|cell| cell.measured_at.is_none_or(|at| now.duration_since(at).abs() >= MEASURED)),
    })
}

//! The model providers, each reached in the protocols that it speaks, and `echo`, which is built in. They are records of the
//! database and entries of the configuration; the hot path sees a table of them (`table`), which is read anew when a notice
//! says so. What requests met is written from time to time (`Providers::keep`), never by a request.

mod client;
mod key;
mod table;

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use base::Result;
use base::id::{ProviderId, ProviderKeyId};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use jiff::{SignedDuration, Timestamp};
use llm::App;
use llm::provider::Cooling;
pub use llm::provider::Failure;
use rustls::ClientConfig;
use store::model::ProviderKind;
use store::notice::{Notice, Topic};
use store::provider::{self as stored, Counted};
use tokio::sync::{Notify, broadcast};

use crate::echo::{self, Echo};
use crate::models::Model;
use crate::protocol::{KeyHeader, Protocol};
use crate::wait::{Waiting, Waits};
pub use key::Key;
pub use table::{Provider, Table};

/// The header in which Anthropic's own API takes the key.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// How long a key that was refused, or whose account has no credit, is asked after the others only.
const REFUSED: SignedDuration = SignedDuration::from_mins(60);
const SPENT: SignedDuration = SignedDuration::from_mins(10);

/// Shorter waits for a model are over before other processes would know of them: they are not written.
const SHORTEST_WRITTEN: Duration = Duration::from_secs(2);

/// What answers for a model.
#[derive(Clone)]
pub enum Route {
    Provider(Arc<Provider>),
    Echo,
}

impl Route {
    /// Whether a model can be asked in a protocol there. `echo` speaks for a provider as that would.
    pub fn speaks(&self, model: &Model, protocol: &Protocol) -> bool {
        let spoken = match self {
            Route::Provider(provider) => provider.speaks(protocol),
            Route::Echo => protocol.is_spoken_by(model.kind),
        };
        spoken && model.allows(protocol)
    }
}

/// What of the client's request, beside its body, decides how a provider is asked.
pub struct ClientRequest<'a> {
    pub protocol: &'static Protocol,
    pub headers: &'a HeaderMap,
    pub query: Option<&'a str>,
}

/// Why a provider gave no answer at all.
#[derive(Debug)]
pub enum Silent {
    /// The provider could not be reached.
    Connect(String),
    /// The connection broke before an answer began.
    Broken(String),
}

pub struct Providers {
    app: Arc<App>,
    tls: ClientConfig,
    table: RwLock<Arc<Table>>,
    /// What began to cool down, or ended, and is not written yet: one change for each row, in the order of the rows.
    changed: Mutex<BTreeMap<Row, Changed>>,
    hurry: Notify,
}

/// A key, and a model; of a key that is spared for all, an empty one.
type Row = (ProviderKeyId, String);

enum Changed {
    Cools(Cooling),
    /// The key is asked again. Models that it waits with stay.
    Answers,
}

impl Providers {
    pub async fn open(app: Arc<App>, waits: &Waits) -> Result<Providers> {
        let providers = Providers {
            app,
            tls: client::tls()?,
            table: RwLock::default(),
            changed: Mutex::default(),
            hurry: Notify::new(),
        };
        providers.read(waits).await?;
        Ok(providers)
    }

    pub fn clock(&self) -> Timestamp {
        self.app.clock.now()
    }

    pub fn now(&self) -> Arc<Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The ways to a model: to its provider, then to the others that offer it. Fails with the reason if there is none.
    pub fn routes(&self, table: &Table, model: &Model) -> Result<Vec<Route>, String> {
        let first = self.route(table, model);
        let others = model.offers.iter().filter(|(provider, _)| *provider != model.provider);
        let further = others.filter_map(|(provider, _)| table.usable(provider).cloned());
        let further = further.map(Route::Provider);
        match first {
            Ok(first) => Ok(std::iter::once(first).chain(further).collect()),
            Err(why) => Some(further.collect::<Vec<_>>()).filter(|routes| !routes.is_empty()).ok_or(why),
        }
    }

    /// The way to a model's first provider, or why there is none.
    fn route(&self, table: &Table, model: &Model) -> Result<Route, String> {
        if model.kind == ProviderKind::Echo {
            return Ok(Route::Echo);
        }
        match (table.usable(&model.provider), table.find(&model.provider)) {
            (Some(provider), _) => Ok(Route::Provider(provider.clone())),
            (None, Some(provider)) if !provider.enabled => {
                Err(format!("cannot be asked: its provider `{}` is switched off", provider.name))
            }
            _ if self.app.providers.echo => Ok(Route::Echo),
            (None, Some(provider)) => Err(format!("cannot be asked: its provider `{}` has no key", provider.name)),
            (None, None) => {
                Err(format!("cannot be asked: its provider `{}` does not exist or cannot be used", model.provider))
            }
        }
    }

    /// Notes an answer with a key: it works. One that costs nothing does not say that the account has credit.
    pub fn succeeded(&self, provider: &Provider, key: &Key, is_billed: bool) {
        key.has_succeeded(self.app.clock.now());
        provider.answered.increment(1);
        if is_billed && key.is_asked_again() {
            self.note((ProviderKeyId::named(&*key.id), String::new()), Changed::Answers);
        }
    }

    /// Notes a failure with a key. A refused key is spared for a while, and so is one whose account is spent.
    pub fn failed(&self, provider: &Provider, key: &Key, failure: Failure) {
        let now = self.app.clock.now();
        key.has_failed(failure, now);
        let labels = [("provider", provider.name.to_string()), ("result", failure.as_str().to_owned())];
        metrics::counter!("tidepool_gateway_provider_answers_total", &labels).increment(1);
        let time = match failure {
            Failure::KeyRefused => REFUSED,
            Failure::Spent => SPENT,
            _ => return,
        };
        if !key.id.is_empty() && !key.is_spared(now) {
            key.spare(now + time);
            self.cools(key, "", failure, now + time);
        }
    }

    /// Notes that a model is not asked with a key for a while. Returns whether it is written for other processes.
    pub fn waits_for(&self, key: &Key, model: &str, time: Duration) -> bool {
        let is_written = time >= SHORTEST_WRITTEN && !key.id.is_empty();
        if is_written {
            let time = SignedDuration::try_from(time).unwrap_or(REFUSED);
            self.cools(key, model, Failure::RateLimited, self.app.clock.now() + time);
        }
        is_written
    }

    fn cools(&self, key: &Key, model: &str, reason: Failure, until_at: Timestamp) {
        let key_id = ProviderKeyId::named(&*key.id);
        let row = (key_id.clone(), model.to_owned());
        self.note(row, Changed::Cools(Cooling { key_id, model: model.to_owned(), reason, until_at }));
    }

    /// The last change of a row is written. Of two times to cool down it is the later one.
    fn note(&self, row: Row, change: Changed) {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = match (changed.get(&row), &change) {
            (Some(Changed::Cools(known)), Changed::Cools(new)) => known.until_at >= new.until_at,
            _ => false,
        };
        if !is_known {
            changed.insert(row, change);
        }
        drop(changed);
        self.hurry.notify_one();
    }

    /// Reads providers, keys, and what cools down.
    pub async fn read(&self, waits: &Waits) -> Result<()> {
        let app = &self.app;
        let all = llm::provider::all(&app.db, &app.sealer, &app.providers).await?;
        let (moment, now) = (waits.moment(), app.clock.now());
        let coolings = stored::coolings(&app.db, now).await?;
        let table = Arc::new(Table::new(&all, &self.now(), &self.tls));
        for key in table.by_name.values().flat_map(|provider| &provider.keys) {
            let of_key: Vec<&Cooling> = coolings.iter().filter(|cooling| *cooling.key_id == *key.id).collect();
            let mut is_spared = false;
            for cooling in &of_key {
                if cooling.model.is_empty() {
                    key.spare(cooling.until_at);
                    is_spared = true;
                } else if let Ok(left) = Duration::try_from(cooling.until_at.duration_since(now)) {
                    let model = cooling.model.as_str().into();
                    waits.wait_from(moment, Waiting { key: key.id.clone(), model, is_billed: true }, left, true);
                }
            }
            // Somebody may have ended it: a test that succeeded, or a change of the provider.
            if self.is_written() {
                waits.keep_only(&key.id, |model| of_key.iter().any(|cooling| cooling.model == *model));
                if !is_spared {
                    key.is_asked_again();
                }
            }
        }
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = table;
        Ok(())
    }

    fn is_written(&self) -> bool {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Writes what requests met since the last time.
    pub async fn write(&self) -> Result<()> {
        let changed = std::mem::take(&mut *self.changed.lock().unwrap_or_else(PoisonError::into_inner));
        let table = self.now();
        let keys = table.by_name.values().flat_map(|provider| provider.keys.iter().map(move |key| (provider, key)));
        let tallies: Vec<_> =
            keys.filter_map(|(provider, key)| Some((provider.id.clone(), key.clone(), key.take()?))).collect();
        if changed.is_empty() && tallies.is_empty() {
            return Ok(());
        }
        let mut counted: Vec<Counted> = tallies
            .iter()
            .map(|(provider, key, tally)| Counted {
                provider_id: ProviderId::named(&**provider),
                key_id: ProviderKeyId::named(&*key.id),
                succeeded: tally.succeeded,
                failed: tally.failed,
                last_success_at: tally.success_at,
                last_failure: tally.failure,
            })
            .collect();
        // All processes lock the rows in the same order.
        counted.sort_by(|a, b| (&a.provider_id, &a.key_id).cmp(&(&b.provider_id, &b.key_id)));
        let written = self.write_all(&changed, &counted).await;
        if written.is_err() {
            tallies.iter().for_each(|(_, key, tally)| key.put_back(tally));
            let mut later = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
            for (row, change) in changed {
                later.entry(row).or_insert(change);
            }
        }
        written
    }

    async fn write_all(&self, changed: &BTreeMap<Row, Changed>, counted: &[Counted]) -> Result<()> {
        let now = self.app.clock.now();
        let mut tx = self.app.db.begin().await?;
        for ((key, model), change) in changed {
            match change {
                Changed::Cools(cooling) => stored::cool(&mut tx, cooling, now).await?,
                Changed::Answers => stored::end_cooling_of(&mut tx, key, model).await?,
            }
        }
        for counted in counted {
            stored::add_health(&mut tx, counted, now).await?;
        }
        if !changed.is_empty() {
            tx.notify(Notice::new(Topic::Provider, "cooling")).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Writes and reads after each pause, and reads at once when a notice says so. Never returns.
    pub async fn keep(&self, waits: &Waits, mut notices: broadcast::Receiver<Notice>, pause: Duration) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.hurry.notified() => {}
                () = may_have_changed(&mut notices) => {}
            }
            if let Err(error) = self.write().await {
                tracing::warn!(%error, "what providers answered is not written yet");
            }
            if let Err(error) = self.read(waits).await {
                tracing::warn!(%error, "the providers are the ones known last");
            }
        }
    }

    /// Sends a request, and returns as soon as the answer begins.
    pub async fn ask(
        &self,
        provider: &Provider,
        key: &Key,
        body: Bytes,
        from: &ClientRequest<'_>,
    ) -> Result<Response<Answer>, Silent> {
        let protocol = from.protocol;
        let Some((uri, with_query)) = provider.uri(protocol) else {
            return Err(Silent::Connect(format!("{} is not spoken there", protocol.name)));
        };
        let uri = if protocol.query.is_some() && from.query == protocol.query { with_query } else { uri };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.clone();
        let headers = request.headers_mut();
        headers.reserve(8);
        if let Some((bearer, alone)) = &key.headers {
            // Those who speak Anthropic's protocol and are not Anthropic take the key in one header or the other.
            if protocol.key_header == KeyHeader::ApiKey {
                headers.insert(API_KEY, alone.clone());
            }
            if protocol.key_header == KeyHeader::Bearer || provider.kind != ProviderKind::Anthropic {
                headers.insert(AUTHORIZATION, bearer.clone());
            }
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("tidepool/", env!("CARGO_PKG_VERSION"))));
        for (name, usual) in protocol.headers {
            let name = HeaderName::from_static(name);
            // A header may come more than once, such as one for each beta.
            for value in from.headers.get_all(&name) {
                headers.append(&name, value.clone());
            }
            if let Some(usual) = usual
                && !headers.contains_key(&name)
            {
                headers.insert(name, HeaderValue::from_static(usual));
            }
        }
        match provider.client.request(request).await {
            Ok(response) => Ok(response.map(Answer::Http)),
            Err(error) if error.is_connect() => Err(Silent::Connect(causes(&error))),
            Err(error) => Err(Silent::Broken(causes(&error))),
        }
    }
}

/// Returns when providers may have changed.
async fn may_have_changed(notices: &mut broadcast::Receiver<Notice>) {
    loop {
        match notices.recv().await {
            Ok(notice) if matches!(notice.topic, Topic::Provider | Topic::Anything) => return,
            Ok(_) => {}
            Err(broadcast::error::RecvError::Lagged(_)) => return,
            Err(broadcast::error::RecvError::Closed) => return std::future::pending().await,
        }
    }
}

/// The answer of `echo`.
pub fn echoed(protocol: &Protocol, body: &Bytes) -> Response<Answer> {
    echo::answer(protocol.echo, body).map(Answer::Echo)
}

/// An error with the chain of its sources.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// The body of an answer, from a provider or from `echo`.
pub enum Answer {
    Http(hyper::body::Incoming),
    Echo(Echo),
    /// Its beginning was read already.
    Begun(VecDeque<Bytes>, Box<Answer>),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Answer::Http(body) => Pin::new(body).poll_frame(cx),
            Answer::Echo(echo) => echo.poll(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece)))),
            Answer::Begun(pieces, rest) => match pieces.pop_front() {
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
                None => Pin::new(rest.as_mut()).poll_frame(cx),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Answer::Http(body) => body.is_end_stream(),
            Answer::Echo(echo) => echo.is_over(),
            Answer::Begun(pieces, rest) => pieces.is_empty() && rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Answer::Http(body) => body.size_hint(),
            Answer::Echo(_) | Answer::Begun(..) => SizeHint::default(),
        }
    }
}

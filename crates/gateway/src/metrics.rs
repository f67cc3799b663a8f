//! The gateway's metrics. A model's handles are made when the table of models is read, so that no request looks them
//! up.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Counter, Histogram, counter, histogram};

use crate::protocol::{self, Protocol};
use crate::tokens::Usage;

/// The metrics of one model at one provider, by protocol. Those of a protocol are made at its first request.
pub struct OfModel {
    model: String,
    provider: String,
    of_protocols: [OnceLock<OfProtocol>; protocol::ALL.len()],
}

struct OfProtocol {
    succeeded: Counter,
    failed: Counter,
    prompt_tokens: Counter,
    completion_tokens: Counter,
    seconds: Histogram,
}

impl OfModel {
    pub fn new(model: &str, provider: &str) -> OfModel {
        OfModel { model: model.to_owned(), provider: provider.to_owned(), of_protocols: Default::default() }
    }

    pub fn count(&self, protocol: &Protocol, succeeded: bool, usage: Usage, took: Duration) {
        if let Some(counts) = self.of_protocols.get(protocol.place) {
            counts.get_or_init(|| OfProtocol::new(&self.model, &self.provider, protocol)).count(succeeded, usage, took);
        }
    }
}

impl OfProtocol {
    fn new(model: &str, provider: &str, protocol: &Protocol) -> OfProtocol {
        let named = [("model", model), ("provider", provider), ("protocol", protocol.name)];
        let labels = named.map(|(name, value)| (name, value.to_owned()));
        let with = |name: &'static str, value: &'static str| {
            let [model, provider, protocol] = labels.clone();
            [model, provider, protocol, (name, value.to_owned())]
        };
        OfProtocol {
            succeeded: counter!("tidepool_gateway_requests_total", &with("status", "success")),
            failed: counter!("tidepool_gateway_requests_total", &with("status", "error")),
            prompt_tokens: counter!("tidepool_gateway_tokens_total", &with("kind", "prompt")),
            completion_tokens: counter!("tidepool_gateway_tokens_total", &with("kind", "completion")),
            seconds: histogram!("tidepool_gateway_request_seconds", &labels),
        }
    }

    fn count(&self, succeeded: bool, usage: Usage, took: Duration) {
        if succeeded {
            self.succeeded.increment(1);
            self.prompt_tokens.increment(usage.prompt.unsigned_abs());
            self.completion_tokens.increment(usage.completion.unsigned_abs());
        } else {
            self.failed.increment(1);
        }
        self.seconds.record(took.as_secs_f64());
    }
}

/// Registers the help texts of the metrics.
pub fn describe() {
    metrics::describe_counter!(
        "tidepool_gateway_requests_total",
        "Requests of the LLM gateway by model, provider, protocol and status"
    );
    metrics::describe_counter!("tidepool_gateway_tokens_total", "Tokens by model, provider, protocol and kind");
    metrics::describe_histogram!(
        "tidepool_gateway_request_seconds",
        "Time to the last byte by model, provider and protocol"
    );
    metrics::describe_counter!(
        "tidepool_gateway_refused_total",
        "Requests refused before a provider was asked, by code"
    );
    metrics::describe_counter!(
        "tidepool_gateway_fallbacks_total",
        "Times that a provider failed and the next was asked"
    );
    metrics::describe_counter!(
        "tidepool_gateway_provider_answers_total",
        "Answers of providers by provider and result: ok, or how they failed"
    );
    metrics::describe_gauge!("tidepool_provider_failing", "1 while requests fail at a provider and none succeeds");
    metrics::describe_gauge!("tidepool_provider_keys_spared", "Keys of a provider that are not asked for a while");
    metrics::describe_gauge!("tidepool_gateway_live", "Requests under way");
    metrics::describe_gauge!("tidepool_gateway_reading_on", "Requests read to their end although their client left");
    metrics::describe_counter!(
        "tidepool_gateway_left_total",
        "Requests whose client left, by what was counted: what the provider told, an estimate, or nothing"
    );
    metrics::describe_counter!("tidepool_gateway_log_failures_total", "Requests that could not be written down");
    metrics::describe_counter!("tidepool_gateway_log_damaged_total", "Damaged lines of the log that were left out");
}

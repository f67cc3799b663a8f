//! Units of a real systemd: started, refused, given up, missing.

use remote::host::file::{Expect, Write, Written};
use remote::host::systemd::{self, Active, Exit, Unit};
use remote::host::{Command, Error, Host};
use testkit::until;

use crate::kit::{Fleet, unique};
use crate::on_hosts;

/// A unit of this case's own.
pub async fn unit(host: &Host, service: &str) -> Unit {
    let unit = Unit::parse(&unique("openclaw")).unwrap();
    let text = format!("[Service]\n{service}\n[Install]\nWantedBy=multi-user.target\n");
    assert_eq!(systemd::write_unit(host, &unit, &text, Expect::Absent).await.unwrap(), Written::New);
    unit
}

pub async fn remove(host: &Host, unit: &Unit) {
    let script = r#"systemctl disable --now -q "$1"; rm "/etc/systemd/system/$1"; systemctl reset-failed "$1"; systemctl daemon-reload"#;
    host.run(&Command::script("test", &[script]).arg(unit.as_str())).await.unwrap();
}

on_hosts! {
    async fn a_unit_is_written_started_enabled_and_stopped(fleet: Fleet) {
        for login in ["root", "ops"] {
            let host = fleet.host_as("h1", login);
            let unit = unit(&host, "ExecStart=sleep 1000").await;
            let state = systemd::state(&host, &unit).await.unwrap();
            assert!(state.is_loaded && !state.is_enabled && state.active == Active::Inactive, "{state:?}");
            let started = systemd::start(&host, &unit).await.unwrap();
            assert!(started.is_running() && started.exit.is_none() && started.since.is_some(), "{started:?}");
            let restarted = systemd::restart(&host, &unit).await.unwrap();
            assert!(restarted.is_running() && restarted.main_pid != started.main_pid);
            assert!(systemd::enable(&host, &unit).await.unwrap().is_enabled);
            assert!(!systemd::disable(&host, &unit).await.unwrap().is_enabled);
            let stopped = systemd::stop(&host, &unit).await.unwrap();
            assert!(!stopped.is_running() && stopped.active == Active::Inactive, "{stopped:?}");
            let text = "[Service]\nExecStart=sleep 2000\n[Install]\nWantedBy=multi-user.target\n";
            assert!(matches!(systemd::write_unit(&host, &unit, text, Expect::Any).await.unwrap(), Written::Replaced { .. }));
            assert_eq!(systemd::write_unit(&host, &unit, text, Expect::Any).await.unwrap(), Written::Same);
            remove(&host, &unit).await;
        }
    }

    async fn a_refused_configuration_is_seen_as_such(fleet: Fleet) {
        let host = fleet.host("h1");
        let unit = unit(&host, "ExecStart=sh -c 'exit 78'\nRestart=always\nRestartSec=0\nRestartPreventExitStatus=78").await;
        systemd::start(&host, &unit).await.ok();
        until("it failed", async || systemd::state(&host, &unit).await.unwrap().active == Active::Failed).await;
        let state = systemd::state(&host, &unit).await.unwrap();
        assert!(state.refused_its_config() && !state.hit_start_limit && state.restarts == 0, "{state:?}");
        remove(&host, &unit).await;
    }

    async fn a_unit_that_systemd_gave_up_is_seen_as_such_and_can_be_started_again(fleet: Fleet) {
        let host = fleet.host("h1");
        let unit = unit(&host, "ExecStart=sh -c 'exit 3'\nRestart=always\nRestartSec=0\n[Unit]\nStartLimitIntervalSec=1h").await;
        systemd::start(&host, &unit).await.ok();
        // Somebody's daemon-reload in between lets systemd begin to count anew.
        let gave_up = async || {
            let limit = systemd::start(&host, &unit).await.is_err_and(|e| e == Error::StartLimit { unit: unit.to_string() });
            let state = systemd::state(&host, &unit).await.unwrap();
            limit && state.hit_start_limit && (state.active, state.exit) == (Active::Failed, Some(Exit::Status(3)))
        };
        until("systemd gave up", gave_up).await;
        let text = "[Service]\nExecStart=sleep 1000\n";
        host.write(&Write::new(unit.path(), text, Expect::Any)).await.unwrap();
        systemd::reset_failed(&host, &unit).await.unwrap();
        let started = systemd::start(&host, &unit).await.unwrap();
        assert!(started.is_running() && !started.hit_start_limit, "{started:?}");
        remove(&host, &unit).await;
    }

    async fn a_start_that_fails_says_how(fleet: Fleet) {
        let host = fleet.host("h1");
        let unit = unit(&host, "Type=oneshot\nExecStart=sh -c 'exit 5'").await;
        let error = systemd::start(&host, &unit).await.unwrap_err();
        assert!(matches!(&error, Error::NotStarted { why, .. } if why == "exit-code, exit status 5"), "{error}");
        remove(&host, &unit).await;
    }

    async fn a_unit_that_is_missing_is_missing(fleet: Fleet) {
        let host = fleet.host("h1");
        let unit = Unit::parse(&unique("nothing")).unwrap();
        let missing = Error::UnitMissing { unit: unit.to_string() };
        assert!(!systemd::state(&host, &unit).await.unwrap().is_loaded);
        assert_eq!(systemd::start(&host, &unit).await.unwrap_err(), missing);
        assert_eq!(systemd::restart(&host, &unit).await.unwrap_err(), missing);
        assert_eq!(systemd::stop(&host, &unit).await.unwrap_err(), missing);
        assert_eq!(systemd::enable(&host, &unit).await.unwrap_err(), missing);
        let both = systemd::states(&host, &[Unit::parse("ssh").unwrap(), unit]).await.unwrap();
        assert!(both[0].is_running() && !both[1].is_loaded);
    }
}

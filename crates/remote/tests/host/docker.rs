//! Containers of a real engine, on h1; h3 has none running.

use remote::host::docker::{self, Action};
use remote::host::{Error, Host};
use testkit::until;

use crate::kit::{Fleet, sh, unique};
use crate::on_hosts;

/// An image needs no registry: a shell and what it is linked to.
pub async fn image(host: &Host) {
    let script = r#"
        docker image inspect tiny >/dev/null 2>&1 && exit
        files=$(for f in /bin/sh /bin/sleep /bin/echo; do echo $f; ldd $f | grep -o '/[^ ]*'; done | sort -u)
        tar -ch $files 2>/dev/null | docker import - tiny"#;
    host.succeed(&sh(script)).await.unwrap();
}

on_hosts! {
    async fn containers_are_listed_started_stopped_and_read(fleet: Fleet) {
        let host = fleet.host_as("h1", "ops");
        image(&host).await;
        let name = unique("web");
        let run = r#"docker run -d --init --name "$1" -p 127.0.0.1::80 tiny /bin/sh -c 'echo out; echo err >&2; sleep 1000'"#;
        host.succeed(&sh(run).arg(&name)).await.unwrap();
        let find = async || {
            let all = docker::list(&host).await.unwrap();
            all.into_iter().find(|container| container.name == name).unwrap()
        };
        let container = find().await;
        assert_eq!((container.state.as_str(), container.image.as_str()), ("running", "tiny"));
        assert!(container.status.starts_with("Up") && container.ports.contains("->80/tcp"), "{container:?}");
        assert!(container.created_at.is_some() && container.id.len() == 64);
        until("both of its lines are in its log", async || {
            let logs = docker::logs(&host, &name).await.unwrap();
            logs.contains("out\n") && logs.contains("err\n")
        }).await;
        docker::act(&host, &name, Action::Stop).await.unwrap();
        assert_eq!(find().await.state, "exited");
        docker::act(&host, &name, Action::Start).await.unwrap();
        docker::act(&host, &container.id, Action::Restart).await.unwrap();
        assert_eq!(find().await.state, "running");
        host.succeed(&sh(r#"docker rm -f "$1""#).arg(&name)).await.unwrap();
        assert_eq!(docker::act(&host, &name, Action::Start).await.unwrap_err(), Error::NoContainer(name.clone()));
        assert_eq!(docker::logs(&host, &name).await.unwrap_err(), Error::NoContainer(name.clone()));
        assert!(matches!(docker::logs(&host, "--help").await, Err(Error::NoContainer(_))));
    }

    async fn a_server_without_an_engine_says_so(fleet: Fleet) {
        let host = fleet.host("h3");
        let error = docker::list(&host).await.unwrap_err();
        assert_eq!(error, Error::NoDocker("it is not running".into()));
    }
}

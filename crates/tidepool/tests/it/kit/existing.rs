//! Gateways of OpenClaw that a server has already, as their operators made them: units of the system, a unit of a user's own, a bare
//! process, a container. The platform has no part in them.

use remote::host::{Command, Host};
use serde_json::{Value, json};
use testkit::until_ok_within;

use super::assistant::START;
use super::hosts::CURRENT;
use super::used_secret;

/// The provider of their own that these gateways have, and its only model.
pub const OWN_MODEL: &str = "own/own-1";

/// The address of a host, as its containers see it.
pub const OF_CONTAINERS: &str = "10.79.0.1";

/// The port on which a gateway listens inside its container.
const INNER: u16 = 18_789;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    Unit,
    UserUnit,
    Process,
    Container,
}

pub struct Existing {
    pub runner: Runner,
    /// Of its Unix user, its unit and its container.
    pub name: String,
    pub home: String,
    /// Of the server.
    pub port: u16,
    /// Where its user talks to it: of a container, from the inside.
    pub door: u16,
    pub token: String,
    host: Host,
}

/// What a gateway is made of.
pub struct Plan<'a> {
    pub name: &'a str,
    pub port: u16,
    /// Where its model provider is.
    pub provider: &'a str,
    /// More of its configuration.
    pub more: Value,
}

impl Plan<'_> {
    fn config(&self, token: &str, port: u16, bind: &str) -> Value {
        let model = json!({"id": "own-1", "name": "Own", "contextWindow": 128_000, "maxTokens": 8_192});
        let provider = json!({"baseUrl": format!("{}/v1", self.provider), "apiKey": "sk-of-its-own", "api": "openai-completions",
            "models": [model]});
        let mut config = json!({
            "gateway": {"mode": "local", "port": port, "bind": bind, "auth": {"mode": "token", "token": token}},
            "update": {"checkOnStart": false},
            "models": {"mode": "merge", "providers": {"own": provider}},
            "agents": {"defaults": {"model": {"primary": OWN_MODEL}}},
        });
        config.as_object_mut().unwrap().extend(self.more.as_object().cloned().unwrap_or_default());
        config
    }
}

/// A user of the server with a configuration in its home.
const MAKE_USER: &str = r#"
    useradd --create-home --shell /bin/bash "$1"
    install -d -m 700 -o "$1" -g "$1" "/home/$1/.openclaw"
    cat >"/home/$1/.openclaw/openclaw.json"
    chown "$1:" "/home/$1/.openclaw/openclaw.json" && chmod 600 "/home/$1/.openclaw/openclaw.json""#;

/// A unit of the system: user $1, with the command $2.
const START_UNIT: &str = r#"
    cat >"/etc/systemd/system/$1.service" <<END
[Unit]
Description=OpenClaw of $1
After=network-online.target
[Service]
User=$1
ExecStart=$2
Restart=always
RestartSec=5
RestartPreventExitStatus=78
TimeoutStopSec=330
SuccessExitStatus=0 143
KillMode=mixed
[Install]
WantedBy=multi-user.target
END
    systemctl daemon-reload && systemctl enable -q --now "$1""#;

/// Defines `as_user`, which runs a command as user $1 in its session, with the Node in folder $2.
const AS_USER: &str = r#"
    user=$1 run=/run/user/$(id -u "$1") node=$2
    cd "/home/$user"
    as_user() {
        runuser -u "$user" -- env -i "HOME=/home/$user" "PATH=$node:/usr/bin:/bin" "XDG_RUNTIME_DIR=$run" \
            "DBUS_SESSION_BUS_ADDRESS=unix:path=$run/bus" "$@"
    }
"#;

/// The unit that OpenClaw writes itself: `gateway install` refuses to where a unit of the system runs another gateway, as on
/// hosts that tests share.
const START_USER_UNIT: &str = r#"
    loginctl enable-linger "$user"
    for i in $(seq 300); do [ -S "$run/bus" ] && break; sleep 0.1; done
    as_user mkdir -p "/home/$user/.config/systemd/user"
    as_user sh -c 'umask 077; cat >"$HOME/.config/systemd/user/openclaw-gateway.service"' <<END
[Unit]
Description=OpenClaw Gateway
After=network-online.target
Wants=network-online.target
StartLimitBurst=10
StartLimitIntervalSec=300

[Service]
ExecStart=$node/node --max-old-space-size=8192 $3 gateway --port $4
Restart=always
RestartSec=5
RestartPreventExitStatus=78
TimeoutStopSec=330
TimeoutStartSec=30
SuccessExitStatus=0 143
OOMPolicy=continue
KillMode=mixed
Environment=HOME=/home/$user
Environment=TMPDIR=/tmp
Environment=PATH=$node:/usr/local/bin:/usr/bin:/bin
Environment=OPENCLAW_GATEWAY_PORT=$4
Environment=OPENCLAW_SYSTEMD_UNIT=openclaw-gateway.service
Environment=OPENCLAW_SERVICE_MARKER=openclaw
Environment=OPENCLAW_SERVICE_KIND=gateway

[Install]
WantedBy=default.target
END
    as_user systemctl --user daemon-reload
    as_user systemctl --user enable -q --now openclaw-gateway"#;

/// It outlives this command, and nothing starts it again.
const START_PROCESS: &str = r#"
    as_user setsid -f "$3" gateway run </dev/null >>"/home/$user/gateway.log" 2>&1"#;

/// Makes the image $1 of Debian's own files, without a registry. Node and OpenClaw are mounted into it.
const MAKE_IMAGE: &str = r#"
    root=$(mktemp -d)
    libraries="libatomic1 libc6 libstdc++6 libgcc-s1 libselinux1 libpcre2-8-0 libtinfo6 libacl1 libattr1 libgmp10"
    for package in bash coreutils dash findutils grep sed mawk $libraries; do dpkg -L $package; done | while read -r path; do
        [ -d "$path" ] || [ ! -e "$path" ] || printf '%s\n' "$(readlink -f "${path%/*}")/${path##*/}"
    done | sort -u | tar -c -T - 2>/dev/null | tar -x -C "$root"
    cp -P /bin /sbin /lib /lib64 "$root"
    mkdir -p "$root/etc" "$root/tmp" "$root/app" && chmod 1777 "$root/tmp"
    printf 'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n' >"$root/etc/passwd"
    printf 'root:x:0:\nnode:x:1000:\n' >"$root/etc/group"
    install -d -o 1000 -g 1000 "$root/home/node" "$root/home/node/.openclaw"
    tar -C "$root" -c . | docker import -c 'USER node' -c 'WORKDIR /home/node' \
        -c 'ENV HOME=/home/node PATH=/app/node_modules/.bin:/app/node_modules/node/bin:/usr/bin:/bin' \
        -c 'CMD ["node", "/app/node_modules/openclaw/openclaw.mjs", "gateway"]' - "$1" >/dev/null
    rm -rf -- "$root""#;

/// Runs container $1 of image $2 with OpenClaw $3, published at port $4. Its state is in a volume.
const START_CONTAINER: &str = r#"
    set -- "$1" "$2" "/opt/images/openclaw/$3/node_modules:/app/node_modules:ro" "$4" "$5"
    inside=/home/node
    docker volume create "$1" >/dev/null
    docker run --rm -i -v "$1:$inside/.openclaw" "$2" sh -c 'umask 077; cat >.openclaw/openclaw.json'
    docker run -d --name "$1" --restart unless-stopped -p "127.0.0.1:$4:$5" -v "$1:$inside/.openclaw" -v "$3" "$2" >/dev/null"#;

/// Leads from port $2 of the server into the container $1, where a program of its user finds the gateway on loopback: OpenClaw lets nobody
/// write who comes from elsewhere without a device that was approved.
const OPEN_DOOR: &str = r#"
    cat >"/run/door-$1.py"
    systemctl stop "door-$1" 2>/dev/null || true
    pid=$(docker inspect -f '{{.State.Pid}}' "$1")
    systemd-run -q --collect --unit="door-$1" python3 "/run/door-$1.py" "/proc/$pid/ns/net" "127.0.0.1:$2=127.0.0.1:$3""#;

fn program(version: &str) -> String {
    format!("/opt/tidepool/openclaw/{version}/openclaw")
}

/// What the units start that OpenClaw writes itself.
fn script(version: &str) -> String {
    format!("/opt/tidepool/openclaw/{version}/node_modules/openclaw/dist/index.js")
}

fn node_folder(version: &str) -> String {
    format!("/opt/tidepool/openclaw/{version}/node_modules/node/bin")
}

/// What a script on a host prints. `$0` and the variables of `sh` are its own.
pub async fn sh(host: &Host, script: &str, args: &[&str], input: &str) -> String {
    let command = Command::script("test", &["set -e\n", script]).args(args.iter().copied()).stdin(input.to_owned());
    host.succeed(&command.limit(START)).await.unwrap().text().trim_end_matches('\n').to_owned()
}

impl Existing {
    fn new(host: &Host, runner: Runner, plan: &Plan<'_>) -> Existing {
        let token = format!("token-of-{}-{}", plan.name, base::id::fresh());
        used_secret(&token);
        let home = match runner {
            Runner::Container => "/home/node".to_owned(),
            _ => format!("/home/{}", plan.name),
        };
        Existing {
            runner,
            name: plan.name.to_owned(),
            home,
            port: plan.port,
            door: plan.port,
            token,
            host: host.clone(),
        }
    }

    async fn with_user(host: &Host, runner: Runner, plan: &Plan<'_>) -> Existing {
        let one = Existing::new(host, runner, plan);
        let config = plan.config(&one.token, plan.port, "loopback").to_string();
        sh(host, MAKE_USER, &[plan.name], &config).await;
        one
    }

    /// A unit of the system that starts OpenClaw's own program.
    pub async fn unit(host: &Host, plan: &Plan<'_>, version: &str) -> Existing {
        let one = Existing::with_user(host, Runner::Unit, plan).await;
        let command = format!("{} gateway run --port {}", program(version), plan.port);
        sh(host, START_UNIT, &[plan.name, &command], "").await;
        one.ready().await;
        one
    }

    /// The same with the command that OpenClaw's own installation of a service writes.
    pub async fn unit_of_node(host: &Host, plan: &Plan<'_>) -> Existing {
        let one = Existing::with_user(host, Runner::Unit, plan).await;
        let command = format!("{}/node {} gateway --port {}", node_folder(CURRENT), script(CURRENT), plan.port);
        sh(host, START_UNIT, &[plan.name, &command], "").await;
        one.ready().await;
        one
    }

    /// A unit whose configuration OpenClaw refuses.
    pub async fn broken(host: &Host, plan: &Plan<'_>) -> Existing {
        let one = Existing::new(host, Runner::Unit, plan);
        sh(host, MAKE_USER, &[plan.name], "{ gateway: ").await;
        let command = format!("{} gateway run --port {}", program(CURRENT), plan.port);
        sh(host, START_UNIT, &[plan.name, &command], "").await;
        let failed = async || {
            let state = sh(host, "systemctl show -p ActiveState --value \"$1\"", &[plan.name], "").await;
            if state == "failed" { Ok(()) } else { Err(state) }
        };
        until_ok_within(START, "OpenClaw refuses its configuration", failed).await;
        one
    }

    pub async fn user_unit(host: &Host, plan: &Plan<'_>) -> Existing {
        let one = Existing::with_user(host, Runner::UserUnit, plan).await;
        let args = [plan.name, &node_folder(CURRENT), &script(CURRENT), &plan.port.to_string()];
        sh(host, &format!("{AS_USER}{START_USER_UNIT}"), &args, "").await;
        one.ready().await;
        one
    }

    pub async fn process(host: &Host, plan: &Plan<'_>) -> Existing {
        let one = Existing::with_user(host, Runner::Process, plan).await;
        let args = [plan.name, &node_folder(CURRENT), &program(CURRENT)];
        sh(host, &format!("{AS_USER}{START_PROCESS}"), &args, "").await;
        one.ready().await;
        one
    }

    /// `door` is a free port of the server.
    pub async fn container(host: &Host, plan: &Plan<'_>, door: u16) -> Existing {
        let one = Existing { door, ..Existing::new(host, Runner::Container, plan) };
        sh(host, MAKE_IMAGE, &[&one.image()], "").await;
        let config = plan.config(&one.token, INNER, "lan").to_string();
        let args = [plan.name, &one.image(), CURRENT, &plan.port.to_string(), &INNER.to_string()];
        sh(host, START_CONTAINER, &args, &config).await;
        one.ready().await;
        one.open_door().await;
        one
    }

    fn image(&self) -> String {
        format!("{}:{CURRENT}", self.name)
    }

    /// Again after each start: a container gets another network then.
    pub async fn open_door(&self) {
        let relay = include_str!("../../../../../testbed/hosts_relay.py");
        sh(&self.host, OPEN_DOOR, &[&self.name, &self.door.to_string(), &INNER.to_string()], relay).await;
        let listens = async || {
            let found = sh(&self.host, "ss -Hltn \"sport = :$1\"", &[&self.door.to_string()], "").await;
            if found.is_empty() { Err("nobody listens") } else { Ok(()) }
        };
        until_ok_within(START, "the container can be entered", listens).await;
    }

    /// Waits until it takes messages.
    pub async fn ready(&self) {
        let ask = "curl -s -m 5 -w ' %{http_code}' \"http://127.0.0.1:$1/readyz\" || true";
        let ready = async || {
            let said = sh(&self.host, ask, &[&self.port.to_string()], "").await;
            if said.ends_with(" 200") { Ok(()) } else { Err((said, self.last_words().await)) }
        };
        until_ok_within(START, &format!("{} is ready", self.name), ready).await;
    }

    async fn last_words(&self) -> String {
        let script = match self.runner {
            Runner::Unit => "journalctl -u \"$1\" -n 20 --no-pager",
            Runner::UserUnit => "journalctl _UID=$(id -u \"$1\") -n 20 --no-pager",
            Runner::Process => "tail -n 20 \"/home/$1/gateway.log\"",
            Runner::Container => "docker logs --tail 20 \"$1\" 2>&1",
        };
        sh(&self.host, script, &[&self.name], "").await
    }

    /// Changes with every start, and with every change of what starts it.
    pub async fn starts(&self) -> String {
        let script = match self.runner {
            Runner::Unit => {
                "systemctl show -p MainPID,NRestarts,ExecMainStartTimestampMonotonic,UnitFileState,DropInPaths \"$1\"
                sha256sum \"/etc/systemd/system/$1.service\""
            }
            Runner::UserUnit => {
                "as_user systemctl --user show -p MainPID,NRestarts,ExecMainStartTimestampMonotonic,UnitFileState,DropInPaths openclaw-gateway
                find .config -type f -exec sha256sum {} + | sort"
            }
            Runner::Process => {
                "pid=$(ss -Hltnp \"sport = :$3\" | grep -o 'pid=[0-9]*' | cut -d = -f 2 | sort -u)
                echo \"$pid: $(sed 's/^.*) //' \"/proc/$pid/stat\" | cut -d ' ' -f 20)\""
            }
            Runner::Container => "docker inspect -f '{{.Id}} {{.State.StartedAt}} {{.State.Pid}} {{.RestartCount}}' \"$1\"",
        };
        let script = match self.runner {
            Runner::UserUnit => format!("{AS_USER}{script}"),
            _ => script.to_owned(),
        };
        sh(&self.host, &script, &[&self.name, &node_folder(CURRENT), &self.port.to_string()], "").await
    }

    /// The files of its configuration to the byte, with all that is known of them, and what else is in its home.
    pub async fn files(&self) -> String {
        let look = "cd && find . -maxdepth 1 -printf '%p %u %m\\n' | sort && cd .openclaw &&
            find . -maxdepth 1 -type f -printf '%p %s %u %m %T@ %C@\\n' | sort && find . -maxdepth 1 -type f -exec sha256sum {} + | sort";
        self.inside(look).await
    }

    /// What its move to elsewhere leaves: its configuration, and what its assistant works on.
    pub async fn possessions(&self) -> String {
        self.inside("cd .openclaw && sha256sum openclaw.json && find workspace -type f -exec sha256sum {} + | sort")
            .await
    }

    pub async fn config(&self) -> Value {
        serde_json::from_str(&self.inside("cat .openclaw/openclaw.json").await).unwrap()
    }

    /// What a script prints that its own user runs in its home.
    async fn inside(&self, script: &str) -> String {
        match self.runner {
            Runner::Container => {
                sh(&self.host, "docker exec -w /home/node \"$1\" sh -c \"$2\"", &[&self.name, script], "").await
            }
            _ => {
                let run = format!("{AS_USER}as_user sh -c \"$3\"");
                sh(&self.host, &run, &[&self.name, &node_folder(CURRENT), script], "").await
            }
        }
    }

    /// Takes it off the server, with all that it left there.
    pub async fn remove(self) {
        let script = match self.runner {
            Runner::Unit => {
                "systemctl disable -q --now \"$1\"; rm -f \"/etc/systemd/system/$1.service\"; systemctl daemon-reload"
            }
            Runner::UserUnit => {
                "as_user systemctl --user disable -q --now openclaw-gateway; loginctl disable-linger \"$1\"; systemctl stop \"user@$(id -u \"$1\")\""
            }
            Runner::Process => "true",
            Runner::Container => {
                "systemctl stop \"door-$1\"; rm -f \"/run/door-$1.py\"
                docker rm -f \"$1\" >/dev/null; docker volume rm \"$1\" >/dev/null; docker rmi \"$3\" >/dev/null"
            }
        };
        let of_user = "
            cd /; pkill -KILL -u \"$1\" || true
            for i in $(seq 100); do pgrep -u \"$1\" >/dev/null || break; sleep 0.1; done
            uid=$(id -u \"$1\"); userdel -r \"$1\" 2>/dev/null
            find /tmp /var/tmp /dev/shm -xdev -uid \"$uid\" -delete";
        let whole = match self.runner {
            Runner::Container => format!("set +e\n{script}\ntrue"),
            Runner::UserUnit => format!("set +e\n{AS_USER}{script}{of_user}\ntrue"),
            Runner::Unit | Runner::Process => format!("set +e\n{script}{of_user}\ntrue"),
        };
        sh(&self.host, &whole, &[&self.name, &node_folder(CURRENT), &self.image()], "").await;
    }
}

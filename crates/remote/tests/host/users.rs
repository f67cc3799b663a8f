//! The Unix users that assistants run as: nobody logs in as one, and what one started goes with it.

use std::sync::atomic::{AtomicU32, Ordering};

use remote::host::users::{self, Made, New};
use remote::host::{Actor, Command, Host};

use crate::kit::{Fleet, folder, said, sh};
use crate::on_hosts;

/// A new user with a home, as the platform makes them.
async fn made(host: &Host) -> (String, String) {
    // Cases share the host, and each runs in a process of its own.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let uid = 3_000_000_000 + std::process::id() % 1_000_000 * 100 + NEXT.fetch_add(1, Ordering::SeqCst);
    let (name, above) = (format!("assistant-{uid}"), folder(host).await);
    let home = format!("{above}/1");
    host.succeed(&Command::new("chmod").args(["755", &above])).await.unwrap();
    let new = New { name: &name, uid, home: &home, used_before: false };
    assert_eq!(users::make(host, &new).await.unwrap(), Made::Yes);
    (name, home)
}

async fn removed(host: &Host, name: &str) {
    users::vacate(host, name, None).await.unwrap();
    users::remove(host, name).await.unwrap();
}

/// What the attack by ssh came to, run by this user without any cell: its status, and what it said.
async fn attacked(host: &Host, name: &str, home: &str) -> (i32, String) {
    let attack = include_str!("../../../../testbed/hostile/log_in_by_ssh_and_forward.sh");
    let command = sh(attack).env("OWN_USER", name).env("OWN_HOME", home).env("SCRATCH", home);
    let output = host.run(&command.by(Actor::User(name.into()))).await.unwrap();
    (output.status, output.text())
}

/// Programs in the place of those that the kernels of the hosts have nothing for: they write down who called them, and how.
const QUOTAS: &str = r#"
    : >/run/quota-calls; chmod 666 /run/quota-calls
    for name in chattr setquota; do
      printf '#!/bin/sh\necho "$(id -un) %s $*" >>/run/quota-calls\n%s\n' "$name" "$([ "$name" != "$1" ] || echo exit 1)" >"/usr/local/bin/$name"
    done
    printf '#!/bin/sh\ncase $* in *FSTYPE*) echo "ext4 rw,prjquota" ;; *) echo /srv ;; esac\n' >/usr/local/bin/findmnt
    printf '#!/bin/sh\necho "%s -----P $2"\n' "$2" >/usr/local/bin/lsattr
    chmod 755 /usr/local/bin/*"#;

on_hosts! {
    /// No kernel here has project quotas: what is proved is who marks what, and that a server that cannot do it gets its assistants.
    async fn a_home_is_marked_for_its_quota_by_whom_it_belongs_to(fleet: Fleet) {
        let alone = fleet.alone();
        let host = fleet.host("h2");
        let calls = async || said(&host, sh("cat /run/quota-calls; : >/run/quota-calls")).await;
        host.succeed(&sh(QUOTAS).args(["", "0"])).await.unwrap();
        let (name, home) = made(&host).await;
        let uid = name.strip_prefix("assistant-").unwrap();
        assert_eq!(calls().await, format!("root chattr -p {uid} +P {home}"), "while it is empty");
        // One from before: its owner marks what is in it, and root follows no name there.
        let fill = r#"mkdir -p a/b && echo x >a/b/file && ln -s /etc/passwd link"#;
        host.succeed(&sh(&format!("cd \"$1\" && {fill}")).arg(&home).by(Actor::User(name.clone()))).await.unwrap();
        assert!(users::limit_disk(&host, &home, 1024).await.unwrap());
        let by_owner = format!("{name} chattr -p {uid} +P ./a ./a/b\n{name} chattr -p {uid} ./a/b/file");
        let by_root = format!("root chattr -p {uid} +P {home}\nroot setquota -P {uid} 0 1048576 0 100000 /srv");
        assert_eq!(calls().await, format!("{by_owner}\n{by_root}"));
        // One that is marked already is not walked through again.
        host.succeed(&sh(QUOTAS).args(["", uid])).await.unwrap();
        assert!(users::limit_disk(&host, &home, 10_240).await.unwrap());
        assert_eq!(calls().await, format!("root setquota -P {uid} 0 10485760 0 655360 /srv"));
        assert!(users::limit_disk(&host, &home, 0).await.unwrap());
        assert_eq!(calls().await, format!("root setquota -P {uid} 0 0 0 0 /srv"));
        for broken in ["chattr", "setquota"] {
            host.succeed(&sh(QUOTAS).args([broken, "0"])).await.unwrap();
            assert!(!users::limit_disk(&host, &home, 1024).await.unwrap(), "{broken}");
        }
        host.succeed(&sh("cd /usr/local/bin && rm -f chattr setquota findmnt lsattr /run/quota-calls")).await.unwrap();
        removed(&host, &name).await;
        drop(alone);
    }

    async fn nobody_logs_in_as_a_user_of_ours(fleet: Fleet) {
        let host = fleet.host("h3");
        let (name, home) = made(&host).await;
        let (status, text) = attacked(&host, &name, &home).await;
        assert_eq!(status, 1, "{text}");
        // It is the account that refuses: one from before is as open as any.
        host.succeed(&Command::new("usermod").args(["--expiredate", "", "--", &name])).await.unwrap();
        let (status, text) = attacked(&host, &name, &home).await;
        assert_eq!(status, 0, "{text}");
        removed(&host, &name).await;
    }
}

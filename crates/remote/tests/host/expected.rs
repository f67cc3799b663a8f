//! Servers that are known by what an administrator expects: a key, a fingerprint, a certificate of an authority.

use remote::host::probe::{Step, probe};
use remote::host::{Address, Error, ExpectedKey, Host, LoginKey, Target};

use crate::kit::{Fleet, Sshd, host_key, new_key, said, sh, unique};
use crate::on_hosts;
use crate::probe::wants;

/// A key of this kind on the host, with a certificate for these names (or `-` for all) by an authority of its own.
struct Certified {
    folder: String,
    /// `@cert-authority …`
    authority: String,
    public: String,
}

impl Certified {
    async fn make(host: &Host, kind: &str, options: &[&str]) -> Certified {
        let folder = format!("/root/{}", unique("certified"));
        let script = r#"
            folder=$1 kind=$2; shift 2
            mkdir "$folder" && cd "$folder" && ssh-keygen -q -t "$kind" -N '' -f ca && ssh-keygen -q -t "$kind" -N '' -f key
            ssh-keygen -q -s ca -I test "$@" key.pub && cut -d' ' -f1,2 ca.pub key.pub"#;
        let printed = said(host, sh(script).arg(&folder).arg(kind).args(options.iter().copied())).await;
        let (authority, public) = printed.split_once('\n').unwrap();
        Certified { folder, authority: format!("@cert-authority * {authority}"), public: public.to_owned() }
    }

    async fn sshd(&self, host: &Host) -> Sshd {
        let settings =
            [format!("HostKey={}/key", self.folder), format!("HostCertificate={}/key-cert.pub", self.folder)];
        Sshd::start(host, &[&settings[0], &settings[1]]).await
    }

    async fn remove(self, host: &Host, sshd: Sshd) {
        sshd.stop().await;
        host.succeed(&sh(r#"rm -r "$1""#).arg(&self.folder)).await.unwrap();
    }
}

fn expecting(fleet: &Fleet, port: u16, expected: &str) -> Address {
    let expected: ExpectedKey = expected.parse().unwrap();
    Address { port, expected: Some(expected), host_key: None, ..fleet.address("h3", "root") }
}

/// Why a server is refused, before anything is sent: the login would be refused too, and for another reason.
async fn refused(address: Address) -> String {
    let (_folder, stranger, _) = new_key("ed25519", "");
    let address = Address { key: LoginKey::File(stranger), ..address };
    match Host::new(Target::Ssh(address)).contact().await {
        Err(Error::HostKeyRefused { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

on_hosts! {
    async fn a_server_that_does_not_show_the_expected_key_is_refused_before_anything_is_sent(fleet: Fleet) {
        let (own, other) = (&fleet.machine("h3").host_key, &fleet.machine("h1").host_key);
        let port = fleet.address("h3", "root").port;
        for expected in [own.clone(), host_key(own).fingerprint()] {
            let host = Host::new(Target::Ssh(expecting(&fleet, port, &expected)));
            assert_eq!(host.contact().await.unwrap(), Some(host_key(own)), "{expected}");
        }
        for expected in [other.clone(), host_key(other).fingerprint()] {
            let why = refused(expecting(&fleet, port, &expected)).await;
            for print in [host_key(own), host_key(other)].map(|key| key.fingerprint()) {
                assert!(why.contains(&print), "{why}");
            }
        }
        // What was expected counts also where another key was taken before.
        let pinned = Address { host_key: Some(host_key(own)), ..expecting(&fleet, port, other) };
        refused(pinned).await;
        let message = base::Error::from(Host::new(Target::Ssh(expecting(&fleet, port, other))).contact().await.unwrap_err());
        assert_eq!((message.kind, message.client.as_ref()), (base::Kind::Conflict, "the server's host key is not the expected one"));
    }

    async fn a_fingerprint_finds_its_key_among_several_kinds(fleet: Fleet) {
        let root = fleet.host("h3");
        let folder = format!("/root/{}", unique("kinds"));
        let script = r#"
            mkdir "$1" && cd "$1" && for kind in rsa ecdsa ed25519; do ssh-keygen -q -t "$kind" -N '' -f "$kind" || exit; done
            cut -d' ' -f1,2 rsa.pub ecdsa.pub ed25519.pub"#;
        let keys = said(&root, sh(script).arg(&folder)).await;
        let settings = ["rsa", "ecdsa", "ed25519"].map(|kind| format!("HostKey={folder}/{kind}"));
        let sshd = Sshd::start(&root, &[&settings[0], &settings[1], &settings[2]]).await;
        for key in keys.lines().map(host_key) {
            for expected in [key.fingerprint(), key.to_string()] {
                let host = Host::new(Target::Ssh(expecting(&fleet, sshd.port, &expected)));
                assert_eq!(host.contact().await.unwrap(), Some(key.clone()), "{expected}");
            }
        }
        let nobodys = host_key(&fleet.machine("h1").host_key).fingerprint();
        assert!(refused(expecting(&fleet, sshd.port, &nobodys)).await.contains(&nobodys));
        sshd.stop().await;
        root.succeed(&sh(r#"rm -r "$1""#).arg(&folder)).await.unwrap();
    }

    async fn a_certificate_of_the_authority_is_enough_and_nothing_less(fleet: Fleet) {
        let root = fleet.host("h3");
        let name = fleet.address("h3", "root").host;
        let mut by_other = None;
        for kind in ["ed25519", "ecdsa", "rsa"] {
            let good = Certified::make(&root, kind, &["-h", "-n", &format!("elsewhere,{name}"), "-V", "-1h:+1h"]).await;
            let sshd = good.sshd(&root).await;
            let address = expecting(&fleet, sshd.port, &good.authority);
            let host = Host::new(Target::Ssh(address.clone()));
            assert_eq!(host.contact().await.unwrap(), Some(host_key(&good.public)), "{kind}");
            assert_eq!(said(&host, sh("echo here")).await, "here");
            let probe = probe(&Target::Ssh(address), &wants(None)).await;
            let message = &probe.reports.iter().find(|report| report.step == Step::HostKey).unwrap().detail;
            assert!(message.contains("certified by SHA256:"), "{message}");
            // Another authority's server, and one that has a key only.
            if let Some(authority) = by_other.replace(good.authority.clone()) {
                assert!(refused(expecting(&fleet, sshd.port, &authority)).await.contains("it showed one by SHA256:"));
            }
            let plain = refused(expecting(&fleet, fleet.address("h3", "root").port, &good.authority)).await;
            assert!(plain.contains("without one"), "{plain}");
            // An authority for other hosts.
            let elsewhere = good.authority.replace("@cert-authority *", "@cert-authority *.example.com");
            assert!(refused(expecting(&fleet, sshd.port, &elsewhere)).await.contains("other hosts"));
            good.remove(&root, sshd).await;
        }
        let bad: [(&[&str], &str); 4] = [
            (&["-h", "-n", "elsewhere"], "not for"),
            (&["-h"], "not for"),
            (&["-h", "-n", &name, "-V", "-2h:-1h"], "expired"),
            (&["-h", "-n", &name, "-V", "+1h:+2h"], "not valid yet"),
        ];
        for (options, why) in bad {
            let made = Certified::make(&root, "ed25519", options).await;
            let sshd = made.sshd(&root).await;
            let message = refused(expecting(&fleet, sshd.port, &made.authority)).await;
            assert!(message.contains(why), "{options:?}: {message}");
            made.remove(&root, sshd).await;
        }
    }
}

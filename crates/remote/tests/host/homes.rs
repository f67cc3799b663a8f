//! Homes of tenants who put links wherever they can: root is led nowhere by them, neither reading, nor copying, nor deleting.

use remote::host::file::{Expect, Write, Written};
use remote::host::home::archive::{Archive, Snapshot};
use remote::host::home::{self, Home};
use remote::host::{Actor, Command, Error, Host};

use crate::kit::{Fleet, folder, said, sh, unique};
use crate::on_hosts;

const MUCH: usize = 1 << 20;
const DAYS: u32 = 7;

/// A home of guest's in a folder of root's, with a state in it.
async fn home_of_guest(host: &Host) -> String {
    let above = folder(host).await;
    let home = format!("{above}/1");
    let script = r#"
        chmod 755 "$1" && install -d -m 700 -o guest -g guest "$2" && cd "$2" &&
        runuser -u guest -- sh -c 'umask 077; mkdir -p .openclaw/logs .openclaw/tmp .openclaw/cache/x && echo "{}" >.openclaw/openclaw.json'"#;
    host.succeed(&sh(script).args([&above, &home])).await.unwrap();
    home
}

/// A folder of root's that guest may look into, as far as its secret; and whether all of it is still there.
async fn victim(host: &Host) -> String {
    let victim = folder(host).await;
    let script = r#"
        chmod 755 "$1"; mkdir "$1/tmp" "$1/cache" "$1/logs"; echo precious >"$1/tmp/a"; echo precious >"$1/cache/b"
        umask 077; echo secret >"$1/secret"; echo secret >"$1/openclaw.json"; echo secret >"$1/logs/openclaw.jsonl""#;
    host.succeed(&sh(script).arg(&victim)).await.unwrap();
    victim
}

async fn is_whole(host: &Host, victim: &str) -> bool {
    let sum = said(
        host,
        sh(r#"cd "$1" && find . | LC_ALL=C sort | tr '\n' ' '; stat -c %U secret; cat tmp/a cache/b secret"#)
            .arg(victim),
    )
    .await;
    sum == ". ./cache ./cache/b ./logs ./logs/openclaw.jsonl ./openclaw.json ./secret ./tmp ./tmp/a root\nprecious\nprecious\nsecret"
}

/// Runs a script as the tenant would.
async fn tenant(host: &Host, script: &str, args: &[&str]) -> String {
    said(host, sh(script).args(args.iter().copied()).by(Actor::User("guest".into()))).await
}

on_hosts! {
    async fn a_link_in_the_place_of_the_state_is_not_followed(fleet: Fleet) {
        for login in ["root", "ops"] {
            let host = fleet.host_as("h1", login);
            let (home, victim) = (home_of_guest(&host).await, victim(&host).await);
            tenant(&host, r#"cd "$1" && mv .openclaw own && ln -s "$2" .openclaw"#, &[&home, &victim]).await;
            let archive = Archive::of(&host, &home, DAYS);
            let error = archive.snapshot("upgrade-1", "2026.9.6", "unit", "next").await.unwrap_err();
            assert!(matches!(error, Error::NoState { .. }), "{error}");
            assert_eq!(archive.find("upgrade-1").await.unwrap(), None);
            assert!(is_whole(&host, &victim).await);
            archive.discard("upgrade-1").await.unwrap();

            // Nor by what reads and writes single files.
            let guest = Home::new(&host, &home, "guest");
            let config = format!("{home}/.openclaw/openclaw.json");
            assert!(matches!(guest.read(&config, MUCH).await, Err(Error::Denied { .. })));
            assert!(matches!(guest.tail(&config, MUCH).await, Err(Error::Denied { .. })));
            let write = Write::new(&config, "mine", Expect::Any);
            assert!(matches!(guest.write(write).await, Err(Error::NotAFile { .. })));
            assert!(guest.make_folders(&[format!("{home}/.openclaw/new")]).await.is_err());
            assert!(guest.remove(&format!("{home}/.openclaw"), "secret").await.is_err());
            assert!(is_whole(&host, &victim).await);

            // What is put away is the link itself.
            archive.put_home_away("clean-1").await.unwrap();
            assert_eq!(said(&host, sh(r#"readlink "$1.archive/clean-1/.openclaw""#).arg(&home)).await, victim);
            assert!(is_whole(&host, &victim).await);
        }
    }

    async fn a_link_in_the_place_of_a_file_is_not_written_through(fleet: Fleet) {
        for login in ["root", "ops"] {
            let host = fleet.host_as("h1", login);
            let home = home_of_guest(&host).await;
            let outside = format!("/dev/shm/{}", unique("outside"));
            let config = format!("{home}/.openclaw/openclaw.json");
            let guest = Home::new(&host, &home, "guest");
            let write = || guest.write(Write::new(&config, "mine", Expect::Any));
            for there in [false, true] {
                let plant = r#"rm -f "$1"; ln -s "$2" "$1"; rm -f "$2"; if [ "$3" = true ]; then echo outside >"$2"; fi"#;
                tenant(&host, plant, &[&config, &outside, &there.to_string()]).await;
                let error = write().await.unwrap_err();
                assert!(matches!(error, Error::NotAFile { .. }), "{error}");
                let found = said(&host, sh(r#"cat "$1" 2>/dev/null || echo none"#).arg(&outside)).await;
                assert_eq!(found, if there { "outside" } else { "none" });
            }
            // Nor through a folder that is a link.
            let folder = format!("{outside}.folder");
            tenant(&host, r#"cd "$1" && mv .openclaw own && mkdir -m 700 "$2" && ln -s "$2" .openclaw"#, &[&home, &folder]).await;
            let error = write().await.unwrap_err();
            assert!(matches!(error, Error::NotAFile { .. }), "{error}");
            assert_eq!(said(&host, sh(r#"ls -A "$1""#).arg(&folder)).await, "");
            tenant(&host, r#"cd "$1" && rmdir "$2" && rm .openclaw "$3" && mv own .openclaw && rm -f .openclaw/openclaw.json"#, &[&home, &folder, &outside]).await;
            // A plain file is written, and its older versions are kept beside it.
            write().await.unwrap();
            let kept = guest.write(Write::new(&config, "more", Expect::Any)).await.unwrap();
            let Written::Replaced { kept } = kept else { panic!("{kept:?}") };
            assert!(kept.starts_with(&format!("{config}.tidepool-")), "{kept}");
            assert_eq!(said(&host, sh(r#"cat "$1" "$2"; stat -c %U "$1" "$2""#).args([&kept, &config])).await, "minemoreguest\nguest");
            assert_eq!(guest.kept(&config).await.unwrap()[0].path, kept);
            // Root follows links of its own, as before.
            let (own, link) = (format!("{home}.own"), format!("{home}.link"));
            host.succeed(&sh(r#"echo a >"$1" && ln -s "$1" "$2""#).args([&own, &link])).await.unwrap();
            host.write(&Write::new(&link, "b", Expect::Any)).await.unwrap();
            assert_eq!(said(&host, sh(r#"cat "$1"; readlink "$2""#).args([&own, &link])).await, format!("b{own}"));
        }
    }

    async fn a_link_that_comes_and_goes_is_never_followed_by_root(fleet: Fleet) {
        let host = fleet.host("h1");
        let (home, victim) = (home_of_guest(&host).await, victim(&host).await);
        let unit = unique("swap");
        // As fast as it can: folders that are folders now and links to root's in the next moment.
        let swap = r#"
            import os, sys
            home, victim = sys.argv[1:]
            os.chdir(home + "/.openclaw")
            os.makedirs("deep/a"); os.symlink(victim, "deep/b")
            while True:
                os.rename("deep/a", "deep/c"); os.rename("deep/b", "deep/a"); os.rename("deep/c", "deep/b")
        "#;
        let swap: String = swap.lines().map(|line| format!("{}\n", line.strip_prefix("            ").unwrap_or(line))).collect();
        let begin = r#"systemd-run -q --unit="$1" --uid=guest python3 -c "$2" "$3" "$4""#;
        host.succeed(&sh(begin).args([&unit, &swap, &home, &victim])).await.unwrap();
        let archive = Archive::of(&host, &home, DAYS);
        for number in 0..8 {
            let name = format!("upgrade-{number}");
            // One that says no because something changed under its hands is as good.
            if archive.snapshot(&name, "2026.9.6", "unit", "next").await.is_ok() {
                let inside = said(&host, sh(r#"tar -tf "$1.archive/$2/state.tar""#).args([&home, &name])).await;
                assert!(!inside.contains("secret") && !inside.contains("cache/b"), "{inside}");
            }
        }
        host.succeed(&Command::new("systemctl").args(["stop", &unit])).await.unwrap();
        assert!(is_whole(&host, &victim).await);
    }

    async fn a_snapshot_is_out_of_its_tenants_reach_and_comes_back_whole(fleet: Fleet) {
        for login in ["root", "ops"] {
            let host = fleet.host_as("h1", login);
            let home = home_of_guest(&host).await;
            let fill = r#"cd "$1/.openclaw" && echo text >a && ln a b && ln -s a c && ln -s /etc/shadow d && mkdir -p ro/x && echo deep >ro/x/f && chmod 500 ro ro/x &&
                echo kept >cache-of-mine && echo gone >tmp/t && chmod 640 a"#;
            tenant(&host, fill, &[&home]).await;
            let list = r#"cd "$1/.openclaw" && find . -printf '%p %M %n %l %U\n' | LC_ALL=C sort"#;
            let before = tenant(&host, list, &[&home]).await;
            let archive = Archive::of(&host, &home, DAYS);
            archive.snapshot("upgrade-1", "2026.9.6", "the unit\n", "next").await.unwrap();
            let kept = Snapshot { version: "2026.9.6".into(), unit: "the unit\n".into(), next: "next".into(), used: false };
            assert_eq!(archive.find("upgrade-1").await.unwrap(), Some(kept.clone()));
            let modes = said(&host, sh(r#"stat -c '%U %a' "$1.archive" "$1.archive/upgrade-1" "$1.archive/upgrade-1/state.tar""#).arg(&home)).await;
            assert_eq!(modes.lines().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>(), ["root"; 3], "{modes}");
            assert_eq!(tenant(&host, r#"ls "$1.archive" 2>/dev/null || echo no"#, &[&home]).await, "no");

            tenant(&host, r#"cd "$1/.openclaw" && echo changed >a && echo new >new"#, &[&home]).await;
            archive.restore("upgrade-1").await.unwrap();
            let after = tenant(&host, list, &[&home]).await;
            let expected: Vec<&str> = before.lines().filter(|line| !["./tmp", "./cache/", "./cache "].iter().any(|gone| line.starts_with(gone))).collect();
            // The folder itself has two links less: those it had by its folders tmp and cache.
            let plain = |text: &str| text.lines().filter(|line| !line.starts_with(". ")).map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(plain(&after), plain(&expected.join("\n")));
            assert_eq!(tenant(&host, r#"cd "$1" && cat .openclaw/a .openclaw.failed/a .openclaw.failed/new; ls -A"#, &[&home]).await, "text\nchanged\nnew\n.openclaw\n.openclaw.failed");
            assert_eq!(archive.find("upgrade-1").await.unwrap(), Some(Snapshot { used: true, ..kept }));
            // Once more, after a worker that went away in the middle.
            tenant(&host, r#"cd "$1" && mv .openclaw .openclaw.back"#, &[&home]).await;
            archive.restore("upgrade-1").await.unwrap();
            assert_eq!(tenant(&host, r#"cd "$1" && cat .openclaw/ro/x/f; ls -A"#, &[&home]).await, "deep\n.openclaw\n.openclaw.failed");
            // Cleaning ends it: neither an upgrade nor a change of the cell goes back to what was before.
            archive.snapshot("cell-1", "2026.9.6", "the unit\n", "next").await.unwrap();
            archive.put_home_away("clean-1").await.unwrap();
            archive.put_home_away("clean-1").await.unwrap();
            assert_eq!(archive.find("upgrade-1").await.unwrap(), None);
            assert_eq!(archive.find("cell-1").await.unwrap(), None);
            let left = said(&host, sh(r#"cd "$1.archive" && ls; ls -A clean-1; [ -e "$1" ] || echo gone"#).arg(&home)).await;
            assert_eq!(left, "cell-1\nclean-1\nupgrade-1\n.openclaw\n.openclaw.failed\ngone");
        }
    }

    async fn a_snapshot_of_an_older_release_is_gone_back_to(fleet: Fleet) {
        let host = fleet.host("h1");
        let home = home_of_guest(&host).await;
        let made = r#"
            mkdir -m 700 "$1.archive" "$1.archive/upgrade-1" && cd "$1.archive/upgrade-1" && cp -a "$1/.openclaw" state && ln -s /etc state/link
            echo old >state/old; chown -h guest: state/old; echo 2026.8.2 >version; echo unit >unit; : >complete"#;
        host.succeed(&sh(made).arg(&home)).await.unwrap();
        Archive::of(&host, &home, DAYS).restore("upgrade-1").await.unwrap();
        let now = r#"cd "$1/.openclaw" && cat old && readlink link && stat -c %U old . && cd .. && ls -A"#;
        assert_eq!(tenant(&host, now, &[&home]).await, "old\n/etc\nguest\nguest\n.openclaw\n.openclaw.failed");
        // One that was a link itself is not.
        host.succeed(&sh(r#"cd "$1.archive/upgrade-1" && rm -rf state state.tar && ln -s /etc state"#).arg(&home)).await.unwrap();
        assert!(matches!(Archive::of(&host, &home, DAYS).restore("upgrade-1").await, Err(Error::NoState { .. })));
    }

    async fn a_home_that_others_can_replace_is_not_moved_by_root(fleet: Fleet) {
        for login in ["root", "ops"] {
            let host = fleet.host_as("h1", login);
            let (home, victim) = (home_of_guest(&host).await, victim(&host).await);
            assert_eq!(home::owner(&host, &home).await.unwrap().as_deref(), Some("guest"));
            assert_eq!(home::owner(&host, &format!("{home}x")).await.unwrap(), None);
            // Whoever owns the folder above can put anything there, also a folder of root's.
            let above = home.rsplit_once('/').unwrap().0;
            host.succeed(&sh(r#"chown guest: "$1"; mkdir "$1/2"; ln -s "$2" "$1/3"; ln -s "$2" "$1/1.archive""#).args([above, &victim])).await.unwrap();
            assert_eq!(home::owner(&host, &home).await.unwrap().as_deref(), Some("guest"), "as guest it may be used");
            assert!(matches!(home::owner(&host, &format!("{above}/2")).await, Err(Error::HomeReplaceable { .. })));
            assert!(matches!(home::owner(&host, &format!("{above}/3")).await, Err(Error::NotAHome { .. })));
            let archive = Archive::of(&host, &home, DAYS);
            let refused = |result: Result<(), Error>| matches!(result, Err(Error::HomeReplaceable { .. }));
            assert!(refused(archive.put_home_away("clean-1").await));
            assert!(refused(archive.snapshot("upgrade-1", "2026.9.6", "unit", "next").await));
            assert!(refused(archive.restore("upgrade-1").await));
            assert!(refused(archive.discard("tmp").await));
            assert!(refused(archive.find("tmp").await.map(drop)));
            // The same where everybody can write, and where it is root's folder again but the archive is a link.
            host.succeed(&sh(r#"chown root: "$1"; chmod 777 "$1""#).arg(above)).await.unwrap();
            assert!(refused(archive.snapshot("upgrade-1", "2026.9.6", "unit", "next").await));
            host.succeed(&sh(r#"chmod 755 "$1""#).arg(above)).await.unwrap();
            assert!(matches!(archive.snapshot("upgrade-1", "2026.9.6", "unit", "next").await, Err(Error::NotAHome { .. })));
            assert!(is_whole(&host, &victim).await);
        }
    }

    async fn what_a_tenant_makes_larger_than_it_was_is_not_taken(fleet: Fleet) {
        let host = fleet.host("h1");
        let home = home_of_guest(&host).await;
        let config = format!("{home}/.openclaw/openclaw.json");
        tenant(&host, r#"truncate -s 1T "$1""#, &[&config]).await;
        let guest = Home::new(&host, &home, "guest");
        assert!(matches!(guest.read(&config, MUCH).await, Err(Error::TooLarge { .. })));
        assert!(matches!(guest.write(Write::new(&config, "x", Expect::Any)).await, Err(Error::TooLarge { .. })));
        assert_eq!(guest.size(&config).await.unwrap(), 1 << 40);
        // What is only holes costs nothing; what is written does.
        let archive = Archive::of(&host, &home, DAYS).at_most(1 << 20);
        archive.snapshot("upgrade-1", "2026.9.6", "unit", "next").await.unwrap();
        tenant(&host, r#"head -c 2000000 /dev/urandom >"$1""#, &[&config]).await;
        assert!(matches!(archive.snapshot("upgrade-1", "2026.9.6", "unit", "next").await, Err(Error::TooLarge { .. })));
        assert_eq!(said(&host, sh(r#"ls "$1.archive/upgrade-1""#).arg(&home)).await, "next\nunit\nversion");
    }
}

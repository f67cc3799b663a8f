//! Files on a server: whole or not at all, with their owner and mode, and never against somebody else's change.

use futures_util::future::join_all;
use remote::host::file::{Expect, Hash, VERSIONS, Write, Written};
use remote::host::{Actor, Command, Error, Host};

use crate::kit::{Fleet, folder, said, sh};
use crate::on_hosts;

const MUCH: usize = 1 << 20;

async fn put(host: &Host, path: &str, text: &str) -> Written {
    host.write(&Write::new(path, text, Expect::Any)).await.unwrap()
}

async fn get(host: &Host, path: &str) -> Option<String> {
    host.read(path, MUCH, Actor::Root).await.unwrap().map(|bytes| String::from_utf8(bytes).unwrap())
}

/// Everything in a folder, hidden files too, a name a line.
async fn names(host: &Host, folder: &str) -> Vec<String> {
    said(host, Command::new("ls").args(["-A", folder])).await.lines().map(str::to_owned).collect()
}

async fn stat(host: &Host, path: &str) -> String {
    said(host, Command::new("stat").args(["-c", "%U:%G %a", path])).await
}

on_hosts! {
    async fn a_new_file_belongs_to_whom_its_folder_belongs(fleet: Fleet) {
        for login in ["root", "ops"] {
            let host = fleet.host_as("h1", login);
            let dir = folder(&host).await;
            host.succeed(&Command::new("chown").args(["guest:guest", &dir])).await.unwrap();
            let path = format!("{dir}/a.json");
            assert_eq!(get(&host, &path).await, None);
            assert_eq!(put(&host, &path, "one").await, Written::New);
            assert_eq!(stat(&host, &path).await, "guest:guest 600");
            assert_eq!(get(&host, &path).await.as_deref(), Some("one"));
            let other = Write::new(format!("{dir}/b"), "x", Expect::Absent).mode(0o644).owner("ops:guest");
            assert_eq!(host.write(&other).await.unwrap(), Written::New);
            assert_eq!(stat(&host, &format!("{dir}/b")).await, "ops:guest 644");
            assert_eq!(names(&host, &dir).await, ["a.json", "b"]);
        }
    }

    async fn owner_and_mode_are_kept_and_five_versions_stay(fleet: Fleet) {
        let host = fleet.host_as("h1", "ops");
        let dir = folder(&host).await;
        let path = format!("{dir}/openclaw.json");
        put(&host, &path, "0").await;
        host.succeed(&sh(r#"chown guest:ops "$1"; chmod 640 "$1""#).arg(&path)).await.unwrap();
        for number in 1..=8 {
            let Written::Replaced { kept } = put(&host, &path, &number.to_string()).await else { panic!("not replaced") };
            assert_eq!(get(&host, &kept).await.unwrap(), (number - 1).to_string());
            assert_eq!(stat(&host, &path).await, "guest:ops 640");
            assert_eq!(stat(&host, &kept).await, "guest:ops 640");
        }
        let names = names(&host, &dir).await;
        assert_eq!(names.len(), 1 + VERSIONS, "{names:?}");
        let kept = said(&host, sh(r#"cat "$1".tidepool-*"#).arg(&path)).await;
        assert_eq!(kept, "34567");
    }

    /// A link to the file that is replaced would be a first event for a gateway that watches it, which makes it miss the second.
    async fn whoever_watches_a_file_sees_nothing_before_it_is_replaced(fleet: Fleet) {
        let host = fleet.host("h1");
        let dir = folder(&host).await;
        let path = format!("{dir}/openclaw.json");
        put(&host, &path, "0").await;
        let inode = Command::new("stat").args(["-c", "%i", &path]);
        let before = said(&host, inode).await;
        let Written::Replaced { kept } = put(&host, &path, "1").await else { panic!("not replaced") };
        assert_ne!(said(&host, Command::new("stat").args(["-c", "%i", &kept])).await, before);
    }

    async fn what_is_there_already_is_not_written(fleet: Fleet) {
        let host = fleet.host("h1");
        let dir = folder(&host).await;
        let path = format!("{dir}/a");
        put(&host, &path, "same").await;
        let before = said(&host, Command::new("stat").args(["-c", "%i %z", &path])).await;
        assert_eq!(put(&host, &path, "same").await, Written::Same);
        assert_eq!(said(&host, Command::new("stat").args(["-c", "%i %z", &path])).await, before);
        assert_eq!(names(&host, &dir).await, ["a"]);
    }

    async fn a_change_by_hand_in_between_is_never_lost(fleet: Fleet) {
        let host = fleet.host("h1");
        let path = format!("{}/a", folder(&host).await);
        put(&host, &path, "read by us").await;
        let read = Hash::of(b"read by us");
        host.succeed(&sh(r#"echo "by hand" >"$1""#).arg(&path)).await.unwrap();
        let error = host.write(&Write::new(&path, "edited by us", Expect::Unchanged(read))).await.unwrap_err();
        assert_eq!(error, Error::ChangedMeanwhile { path: path.clone() });
        assert_eq!(get(&host, &path).await.as_deref(), Some("by hand\n"));
        let error = host.write(&Write::new(&path, "new", Expect::Absent)).await.unwrap_err();
        assert_eq!(error, Error::ChangedMeanwhile { path: path.clone() });
        let gone = Write::new(format!("{path}-gone"), "x", Expect::Unchanged(Hash::of(b"y")));
        assert!(matches!(host.write(&gone).await, Err(Error::ChangedMeanwhile { .. })));
        let now = Expect::Unchanged(Hash::of(b"by hand\n"));
        assert!(matches!(host.write(&Write::new(&path, "merged", now)).await.unwrap(), Written::Replaced { .. }));
    }

    async fn of_many_writers_with_the_same_idea_of_a_file_one_wins(fleet: Fleet) {
        let host = fleet.host("h1");
        let path = format!("{}/a", folder(&host).await);
        put(&host, &path, "start").await;
        let writes: Vec<Write> = (0..20)
            .map(|number| Write::new(&path, format!("writer {number}"), Expect::Unchanged(Hash::of(b"start"))))
            .collect();
        let outcomes = join_all(writes.iter().map(|write| host.write(write))).await;
        let won: Vec<usize> = (0..20).filter(|number| outcomes[*number].is_ok()).collect();
        assert_eq!(won.len(), 1, "{outcomes:?}");
        assert!(outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).all(|e| matches!(e, Error::ChangedMeanwhile { .. })));
        assert_eq!(get(&host, &path).await.unwrap(), format!("writer {}", won[0]));
    }

    async fn on_a_full_disk_the_old_file_stays(fleet: Fleet) {
        let host = fleet.host("h1");
        let dir = folder(&host).await;
        host.succeed(&Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs", &dir])).await.unwrap();
        let path = format!("{dir}/a");
        put(&host, &path, "old").await;
        let error = host.write(&Write::new(&path, vec![b'x'; 200_000], Expect::Any)).await.unwrap_err();
        assert_eq!(error, Error::DiskFull { path: path.clone() });
        assert_eq!(get(&host, &path).await.as_deref(), Some("old"));
        assert_eq!(names(&host, &dir).await, ["a"]);
        host.succeed(&Command::new("umount").arg(&dir)).await.unwrap();
    }

    async fn what_is_read_only_is_said_to_be_so(fleet: Fleet) {
        let host = fleet.host("h1");
        let dir = folder(&host).await;
        let path = format!("{dir}/a");
        host.succeed(&Command::new("mount").args(["-t", "tmpfs", "tmpfs", &dir])).await.unwrap();
        put(&host, &path, "old").await;
        host.succeed(&Command::new("mount").args(["-o", "remount,ro", &dir])).await.unwrap();
        let error = host.write(&Write::new(&path, "new", Expect::Any)).await.unwrap_err();
        assert_eq!(error, Error::ReadOnly { path: path.clone() });
        assert_eq!(put(&host, &path, "old").await, Written::Same);
        host.succeed(&Command::new("umount").arg(&dir)).await.unwrap();

        put(&host, &path, "old").await;
        host.succeed(&Command::new("chattr").args(["+i", &path])).await.unwrap();
        let error = host.write(&Write::new(&path, "new", Expect::Any)).await.unwrap_err();
        host.succeed(&Command::new("chattr").args(["-i", &path])).await.unwrap();
        assert_eq!(error, Error::ReadOnly { path: path.clone() });
        assert_eq!(get(&host, &path).await.as_deref(), Some("old"));
        assert_eq!(names(&host, &dir).await, ["a"]);
    }

    async fn a_user_cannot_lead_us_astray_by_a_link(fleet: Fleet) {
        let host = fleet.host_as("h1", "ops");
        let dir = folder(&host).await;
        let secret = format!("{}/secret", folder(&host).await);
        put(&host, &secret, "of root").await;
        host.succeed(&sh(r#"chown guest: "$1"; ln -s "$2" "$1/a"; chown -h guest: "$1/a""#).args([&dir, &secret])).await.unwrap();
        let guest = Actor::User("guest".into());
        let path = format!("{dir}/a");
        let error = host.read(&path, MUCH, guest.clone()).await.unwrap_err();
        assert_eq!(error, Error::Denied { path: path.clone() });
        let error = host.write(&Write::new(&path, "new", Expect::Any).by(guest.clone())).await.unwrap_err();
        assert_eq!(error, Error::Denied { path: path.clone() });
        assert_eq!(get(&host, &secret).await.as_deref(), Some("of root"));
        let own = Write::new(format!("{dir}/b"), "fine", Expect::Absent).by(guest);
        assert_eq!(host.write(&own).await.unwrap(), Written::New);
        assert_eq!(stat(&host, &format!("{dir}/b")).await, "guest:guest 600");
    }

    async fn a_link_stays_one_and_what_it_names_is_replaced(fleet: Fleet) {
        let host = fleet.host("h1");
        let dir = folder(&host).await;
        let (real, link) = (format!("{dir}/real"), format!("{dir}/link"));
        put(&host, &real, "old").await;
        host.succeed(&Command::new("ln").args(["-s", "real", &link])).await.unwrap();
        assert!(matches!(put(&host, &link, "new").await, Written::Replaced { kept } if kept.starts_with(&real)));
        assert_eq!(get(&host, &real).await.as_deref(), Some("new"));
        assert_eq!(said(&host, Command::new("readlink").arg(&link)).await, "real");
    }

    async fn hostile_names_are_names(fleet: Fleet) {
        let host = fleet.host_as("h1", "fisher");
        let dir = folder(&host).await;
        for name in ["a b", "-rf", "$(touch pwned)", "`id`", "q'u\"o", "back\\slash", "new\nline", "end\n", "*", "?", "[a]", "ä\u{1F41A}", "; reboot"] {
            let inner = format!("{dir}/{name}");
            host.succeed(&Command::new("mkdir").args(["--", &inner])).await.unwrap();
            let path = format!("{inner}/{name}");
            assert_eq!(put(&host, &path, "one").await, Written::New, "{name:?}");
            assert!(matches!(put(&host, &path, "two").await, Written::Replaced { .. }), "{name:?}");
            assert_eq!(put(&host, &path, "two").await, Written::Same, "{name:?}");
            assert_eq!(get(&host, &path).await.as_deref(), Some("two"), "{name:?}");
            let tail = host.tail(&path, 2, Actor::Root).await.unwrap().unwrap();
            assert_eq!((tail.bytes.as_slice(), tail.size), (b"wo".as_slice(), 3), "{name:?}");
            let count = said(&host, sh(r#"cd -- "$1" && set -- * && echo $#"#).arg(&inner)).await;
            assert_eq!(count, "2", "{name:?}");
        }
        assert_eq!(said(&host, sh(r#"find "$1" -name 'pwned*' | wc -l"#).arg(&dir)).await, "0");
    }

    async fn what_is_no_file_is_left_alone(fleet: Fleet) {
        let host = fleet.host("h1");
        let dir = folder(&host).await;
        host.succeed(&sh(r#"mkdir "$1/dir"; mkfifo "$1/pipe"; ln -s nowhere/x "$1/dangling""#).arg(&dir)).await.unwrap();
        for name in ["dir", "pipe"] {
            let path = format!("{dir}/{name}");
            assert_eq!(host.read(&path, MUCH, Actor::Root).await.unwrap_err(), Error::NotAFile { path: path.clone() });
            let error = host.write(&Write::new(&path, "x", Expect::Any)).await.unwrap_err();
            assert_eq!(error, Error::NotAFile { path });
        }
        let nowhere = format!("{dir}/none/a");
        assert_eq!(host.read(&nowhere, MUCH, Actor::Root).await.unwrap(), None);
        assert_eq!(host.write(&Write::new(&nowhere, "x", Expect::Any)).await.unwrap_err(), Error::NoFolder { path: nowhere });
        let dangling = format!("{dir}/dangling");
        assert_eq!(host.read(&dangling, MUCH, Actor::Root).await.unwrap(), None);
        assert!(host.write(&Write::new(&dangling, "x", Expect::Any)).await.is_err());
    }

    async fn of_a_huge_log_only_the_end_is_read(fleet: Fleet) {
        let host = fleet.host("h3");
        let path = format!("{}/log", folder(&host).await);
        // Nobody reads a tebibyte within a command's time.
        let fill = r#"truncate -s 1T "$1"; printf 'last \377 line\n' >>"$1""#;
        host.succeed(&sh(fill).arg(&path)).await.unwrap();
        let tail = host.tail(&path, 64 * 1024, Actor::Root).await.unwrap().unwrap();
        assert_eq!((tail.bytes.len(), tail.size), (64 * 1024, (1 << 40) + 12));
        assert!(tail.bytes.ends_with(b"\0last \xff line\n"));
        assert_eq!(host.read(&path, MUCH, Actor::Root).await.unwrap_err(), Error::TooLarge { path: path.clone(), limit: MUCH });
        host.succeed(&Command::new("rm").arg(&path)).await.unwrap();
        assert_eq!(host.tail(&path, 10, Actor::Root).await.unwrap(), None);
    }

    async fn large_and_empty_and_binary_files_arrive_whole(fleet: Fleet) {
        let host = fleet.host("h1");
        let path = format!("{}/a", folder(&host).await);
        let large: Vec<u8> = (0..5_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for bytes in [large, vec![], (0..=255).collect()] {
            host.write(&Write::new(&path, bytes.clone(), Expect::Any)).await.unwrap();
            assert!(host.read(&path, 8 << 20, Actor::Root).await.unwrap() == Some(bytes));
        }
    }
}

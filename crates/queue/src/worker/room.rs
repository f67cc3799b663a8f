//! How many tasks a worker may take.
//!
//! Limits per priority keep less urgent tasks from using all slots. A limit per server keeps a slow server, whose tasks
//! take minutes, from blocking the others. Security tasks have slots of their own and may use at most half of the
//! others, so that a gateway that does not respond does not block everything else.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use base::id::ServerId;
use store::task::{Load, Priority};

/// Slots that only security tasks use, in addition to all others.
const SECURITY: usize = 4;

/// The slots of a worker: used and free.
#[derive(Clone, Debug)]
pub(super) struct Room {
    slots: usize,
    held: [usize; Priority::ALL.len()],
    /// Running tasks of each server, over all processes.
    servers: HashMap<ServerId, usize>,
    per_server: usize,
}

impl Room {
    pub fn new(slots: usize) -> Room {
        Room { slots, held: [0; Priority::ALL.len()], servers: HashMap::new(), per_server: slots }
    }

    /// Sets what the worker holds now.
    pub fn hold(&mut self, held: impl Iterator<Item = Priority>) {
        self.held = [0; Priority::ALL.len()];
        held.for_each(|priority| self.held[priority as usize] += 1);
    }

    /// The limit for tasks of this priority and all lower ones together; for security, of security tasks alone.
    fn most(&self, priority: Priority) -> usize {
        match priority {
            Priority::Security => SECURITY + self.slots / 2,
            Priority::People => self.slots,
            Priority::Fleet => self.slots - self.slots / 4,
            Priority::Background => (self.slots / 2).max(1),
        }
    }

    /// How many more tasks of this priority may be taken. Security tasks beyond their own slots use the slots of the
    /// others.
    fn left(&self, priority: Priority) -> usize {
        let security = self.held[Priority::Security as usize];
        let beyond = security.saturating_sub(SECURITY);
        let others: usize = self.held[Priority::People as usize..].iter().sum();
        let free = self.slots.saturating_sub(others + beyond);
        if priority == Priority::Security {
            let own = SECURITY.saturating_sub(security);
            return (own + free).min(self.most(priority).saturating_sub(security));
        }
        let running: usize = self.held[priority as usize..].iter().sum();
        self.most(priority).saturating_sub(running).min(free)
    }

    /// The range of priorities that have a free slot, from highest to lowest; `None` if there is none. It has no holes:
    /// a task counts against the limits of all higher priorities except security.
    pub fn open(&self) -> Option<RangeInclusive<Priority>> {
        let others = Priority::ALL.into_iter().skip(1).take_while(|priority| self.left(*priority) > 0).last();
        match (self.left(Priority::Security) > 0, others) {
            (true, lowest) => Some(Priority::Security..=lowest.unwrap_or(Priority::Security)),
            (false, Some(lowest)) => Some(Priority::People..=lowest),
            (false, None) => None,
        }
    }

    /// The largest number of tasks that a query can use.
    pub fn limit(&self) -> usize {
        self.left(Priority::Security) + self.left(Priority::People)
    }

    /// Sets the number of servers and what runs on each. A server's limit is an equal part of the slots, but at least a
    /// quarter of them, and at most three quarters, so that a quarter is left for tasks that need no server.
    pub fn share(&mut self, servers: usize, loads: Vec<Load>) {
        let quarter = self.slots / 4;
        let part = self.slots.div_ceil(servers.max(1));
        self.per_server = part.clamp(quarter, self.slots - quarter).max(1);
        let number = |load: &Load| usize::try_from(load.n).unwrap_or(usize::MAX);
        self.servers = loads.into_iter().map(|load| (load.server_id.clone(), number(&load))).collect();
    }

    /// The servers that are at their limit.
    pub fn full_servers(&self) -> Vec<ServerId> {
        let full = self.servers.iter().filter(|(_, running)| **running >= self.per_server);
        full.map(|(server, _)| server.clone()).collect()
    }

    /// Takes a slot for one more task. False if there is none.
    pub fn take(&mut self, priority: Priority, server: Option<&ServerId>) -> bool {
        if self.open().is_none_or(|open| !open.contains(&priority)) {
            return false;
        }
        if let Some(server) = server {
            let running = self.servers.entry(server.clone()).or_default();
            // Security tasks ignore the limit of a server.
            if *running >= self.per_server && priority != Priority::Security {
                return false;
            }
            *running += 1;
        }
        self.held[priority as usize] += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(room: &mut Room, priority: Priority) -> usize {
        (0..100).filter(|_| room.take(priority, None)).count()
    }

    #[test]
    fn what_is_less_urgent_leaves_slots_for_what_is_more() {
        let mut room = Room::new(16);
        let taken: Vec<usize> = Priority::ALL.into_iter().rev().map(|priority| fill(&mut room, priority)).collect();
        assert_eq!(taken, [8, 4, 4, 4], "background, fleet, people, security");
        assert_eq!((room.open(), room.limit()), (None, 0));
        room.hold([Priority::People; 16].into_iter());
        let security = Priority::Security..=Priority::Security;
        assert_eq!(room.open(), Some(security), "people have every slot, and security its own");
        let mut one = Room::new(1);
        assert_eq!(one.open(), Some(Priority::Security..=Priority::Background), "a single slot is everybody's");
        assert_eq!((fill(&mut one, Priority::Background), fill(&mut one, Priority::Security)), (1, 4));
    }

    #[test]
    fn security_leaves_slots_for_the_others() {
        let mut room = Room::new(16);
        assert_eq!(fill(&mut room, Priority::Security), 12, "its own four, and half of the others");
        assert_eq!(room.open(), Some(Priority::People..=Priority::Background));
        assert_eq!((fill(&mut room, Priority::Background), fill(&mut room, Priority::People)), (8, 0));
        room.hold([Priority::Security; 12].into_iter());
        assert_eq!(fill(&mut room, Priority::People), 8);
    }

    #[test]
    fn a_server_takes_its_share() {
        let share = |slots, servers| {
            let mut room = Room::new(slots);
            room.share(servers, vec![]);
            (0..100).filter(|_| room.take(Priority::People, Some(&ServerId::named("sick")))).count()
        };
        assert_eq!([share(16, 1), share(16, 2), share(16, 3), share(16, 100)], [12, 8, 6, 4]);
        assert_eq!([share(1, 1), share(1, 9), share(2, 9), share(3, 2)], [1, 1, 1, 2]);
        let mut room = Room::new(16);
        room.share(
            4,
            vec![Load { server_id: ServerId::named("sick"), n: 4 }, Load { server_id: ServerId::named("well"), n: 1 }],
        );
        assert_eq!(room.full_servers(), ["sick"]);
        assert!(
            !room.take(Priority::People, Some(&ServerId::named("sick")))
                && room.take(Priority::People, Some(&ServerId::named("well")))
        );
    }
}

//! Which steps lead from what was observed to what is desired. Pure: it asks nobody, so every case can be tested.

use base::Result;
use openclaw::config::{self, needs_restart};
use openclaw::{Document, Version};

use super::observed::{Observed, Service};
use super::step::Step;
use crate::assistant::config::Editing;
use crate::assistant::pending::Pending;

/// How the configuration on the server differs from the desired one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    Nothing,
    /// A running gateway takes over all of it by itself.
    Hot,
    /// A running gateway must be restarted for some of it.
    NeedsRestart,
}

impl Difference {
    /// What the edit would change. `None`: there is no file.
    pub fn of(document: Option<&Document>, version: &Version, editing: Editing<'_>) -> Result<Difference> {
        let Some(document) = document else { return Ok(Difference::NeedsRestart) };
        let changes = config::edit(&mut document.clone(), version, editing)?;
        Ok(match changes.is_empty() {
            true => Difference::Nothing,
            false if needs_restart(&changes) => Difference::NeedsRestart,
            false => Difference::Hot,
        })
    }
}

/// The steps that are left, in their order.
pub fn plan(difference: Difference, observed: &Observed) -> Vec<Step> {
    let mut steps = vec![];
    if difference != Difference::Nothing {
        if observed.service == Service::Runs && observed.pending == Pending::Reload {
            // Of two writes, the log would not say which one was taken over.
            steps.push(Step::Reload);
        }
        steps.push(Step::WriteConfig);
    }
    match (observed.service, observed.pending, difference) {
        (Service::Missing, ..) => {}
        // It was stopped to be started again. What is left of it may still have its port.
        (Service::Down, Pending::Restart, _) => steps.push(Step::Restart),
        (Service::Down, Pending::Start, _) => steps.push(Step::Start),
        // Somebody stopped it: it reads its configuration when they start it.
        (Service::Down, Pending::Nothing, _) => {}
        // It went down before it took over what was written: there is nothing to wait for.
        (Service::Down, Pending::Reload, _) => steps.push(Step::Reload),
        (Service::Runs, Pending::Restart, _) | (Service::Runs, _, Difference::NeedsRestart) => {
            steps.push(Step::Restart);
        }
        (Service::Runs, Pending::Start, _) => steps.push(Step::Start),
        (Service::Runs, Pending::Reload, _) | (Service::Runs, _, Difference::Hot) => steps.push(Step::Reload),
        (Service::Runs, Pending::Nothing, Difference::Nothing) => {}
    }
    steps
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a server would be like, as far as the steps change it.
    #[derive(Clone, Copy, Debug)]
    struct World {
        /// Whether the file is the desired one.
        written: bool,
        /// Whether the gateway runs with the desired file.
        loaded: bool,
        needs_restart: bool,
        service: Service,
        pending: Pending,
        stops: usize,
    }

    impl World {
        fn observed(&self) -> Observed {
            Observed { service: self.service, pending: self.pending }
        }

        fn difference(&self) -> Difference {
            match (self.written, self.needs_restart) {
                (true, _) => Difference::Nothing,
                (false, true) => Difference::NeedsRestart,
                (false, false) => Difference::Hot,
            }
        }

        /// The actions of a step, in their order. A worker may go away between any two.
        fn actions(&self, step: Step) -> Vec<fn(&mut World)> {
            let start: [fn(&mut World); 3] = [
                |world| world.pending = Pending::Start,
                |world| {
                    world.loaded = world.written;
                    world.service = Service::Runs;
                },
                |world| world.pending = Pending::Nothing,
            ];
            let stop: [fn(&mut World); 2] = [
                |world| world.pending = Pending::Restart,
                |world| {
                    world.stops += usize::from(world.service == Service::Runs);
                    (world.service, world.loaded) = (Service::Down, false);
                },
            ];
            match step {
                Step::WriteConfig => vec![
                    |world| {
                        world.pending = match (world.pending, world.service, world.needs_restart) {
                            (Pending::Restart, ..) => Pending::Restart,
                            (other, Service::Down | Service::Missing, _) => other,
                            (_, Service::Runs, true) => Pending::Restart,
                            (_, Service::Runs, false) => Pending::Reload,
                        }
                    },
                    |world| world.written = true,
                ],
                Step::Reload => vec![|world| world.loaded = world.service == Service::Runs && world.written, |world| {
                    world.pending = Pending::Nothing
                }],
                Step::Restart => [&stop[..], &start[..]].concat(),
                Step::Start => start.to_vec(),
                other => panic!("{other:?} is no step of a plan"),
            }
        }
    }

    fn worlds() -> impl Strategy<Value = World> {
        let service = prop_oneof![Just(Service::Down), Just(Service::Runs)];
        let pending =
            prop_oneof![Just(Pending::Nothing), Just(Pending::Reload), Just(Pending::Restart), Just(Pending::Start)];
        (any::<bool>(), any::<bool>(), any::<bool>(), service, pending).prop_map(
            |(written, loaded, needs_restart, service, pending)| World {
                written,
                // A gateway runs with an older file only while that is noted.
                loaded: service == Service::Runs && written && (loaded || pending == Pending::Nothing),
                needs_restart,
                service,
                pending,
                stops: 0,
            },
        )
    }

    proptest! {
        /// From any state, broken off anywhere and begun again, the plan leads to the desired state and then is empty.
        #[test]
        fn fuzz_a_plan_leads_to_the_desired_state(world in worlds(), breaks in proptest::collection::vec(0usize..6, 0..6)) {
            let (before, mut world) = (world, world);
            let mut breaks = breaks.into_iter();
            for _ in 0..20 {
                let steps = plan(world.difference(), &world.observed());
                let Some(step) = steps.first() else { break };
                // The worker goes away after this many actions of the step.
                let most = breaks.next().unwrap_or(usize::MAX);
                for action in world.actions(*step).into_iter().take(most) {
                    action(&mut world);
                }
            }
            prop_assert_eq!(plan(world.difference(), &world.observed()), vec![]);
            prop_assert!(world.written && world.pending == Pending::Nothing, "{:?}", world);
            let was_to_run = before.service == Service::Runs || before.pending.is_start();
            prop_assert_eq!(world.service == Service::Runs, was_to_run, "{:?}", world);
            prop_assert!(!was_to_run || world.loaded, "{:?}", world);
            let had_reason = before.needs_restart && !before.written || before.pending.is_start();
            prop_assert!(had_reason || world.stops == 0, "stopped without a reason: {:?}", world);
        }
    }

    #[test]
    fn the_steps_of_each_case() {
        use Difference::{Hot, NeedsRestart, Nothing};
        let steps = |difference, service, pending| plan(difference, &Observed { service, pending });
        let cases = [
            (Nothing, Service::Runs, Pending::Nothing, vec![]),
            (Hot, Service::Runs, Pending::Nothing, vec![Step::WriteConfig, Step::Reload]),
            (NeedsRestart, Service::Runs, Pending::Nothing, vec![Step::WriteConfig, Step::Restart]),
            (Nothing, Service::Runs, Pending::Reload, vec![Step::Reload]),
            (Hot, Service::Runs, Pending::Reload, vec![Step::Reload, Step::WriteConfig, Step::Reload]),
            (Hot, Service::Runs, Pending::Restart, vec![Step::WriteConfig, Step::Restart]),
            (NeedsRestart, Service::Down, Pending::Nothing, vec![Step::WriteConfig]),
            (Nothing, Service::Down, Pending::Start, vec![Step::Start]),
            (Nothing, Service::Down, Pending::Nothing, vec![]),
            (Hot, Service::Missing, Pending::Nothing, vec![Step::WriteConfig]),
        ];
        for (difference, service, pending, expected) in cases {
            assert_eq!(steps(difference, service, pending), expected, "{difference:?} {service:?} {pending:?}");
        }
    }
}

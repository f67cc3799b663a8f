//! The plans of operations whose order matters: to make an instance on its server, to make it an employee's, to remove
//! its last holder's traces, and to take it off its server. Pure, so that every order can be tested. A task that was
//! broken off begins its operation again, with what it finds then.

use super::step::Step;

/// What there is of an instance on its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct There {
    pub unit: UnitOwner,
    pub has_home: bool,
    /// Whether the unit starts it as the user whose home it is.
    pub is_unit_of_owner: bool,
}

/// Whose the unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitOwner {
    /// There is no unit.
    Nobody,
    /// The platform wrote it.
    Platform,
    /// Somebody else wrote it, and a super administrator named it for this instance.
    Adopted,
    /// Somebody else wrote it.
    Stranger,
}

/// Makes the instance on its server. Its user is there already: whose home it is was checked in between.
pub fn provision() -> Vec<Step> {
    vec![Step::WriteConfig, Step::WriteUnit, Step::EnableUnit, Step::Restart]
}

/// Makes the instance its new holder's, before their files are written and it is restarted. If its home was gone, so was
/// its user, and its unit must start it as the new one; an earlier attempt may have come between the two.
pub fn init(there: There) -> Vec<Step> {
    let mut steps = vec![Step::MakeUser];
    if !there.has_home || !there.is_unit_of_owner {
        steps.push(Step::WriteUnit);
    }
    steps.push(Step::WriteConfig);
    steps
}

/// Removes the traces of the last holder. Nothing of them runs before their home is moved away, and nothing starts before
/// the instance has another user.
pub fn clean(there: There) -> Vec<Step> {
    let has_unit = there.unit != UnitOwner::Nobody;
    let mut steps = vec![];
    if has_unit {
        steps.push(Step::Stop);
    }
    steps.extend([Step::Vacate, Step::PutHomeAway, Step::RemoveUser, Step::MakeUser]);
    if has_unit {
        steps.push(Step::WriteUnit);
    }
    steps.push(Step::WriteConfig);
    if has_unit {
        steps.push(Step::Start);
    }
    steps
}

/// Takes the service of the instance off its server. A unit that is somebody else's stays.
pub fn retire_service(there: There) -> Vec<Step> {
    match there.unit {
        UnitOwner::Platform => vec![Step::StopForGood, Step::RemoveUnit],
        UnitOwner::Adopted => vec![Step::StopForGood],
        UnitOwner::Stranger | UnitOwner::Nobody => vec![],
    }
}

/// Takes its home and user off its server, once its service is gone.
pub fn retire_home(there: There) -> Vec<Step> {
    let mut steps = vec![Step::Vacate];
    if there.has_home {
        steps.push(Step::PutHomeAway);
    }
    steps.push(Step::RemoveUser);
    steps
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whose data, processes or user something is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Holder {
        Former,
        Next,
    }

    /// A server, as far as the steps of a cleaning change it.
    #[derive(Clone, Copy, Debug)]
    struct World {
        has_unit: bool,
        /// Whose data is in the home.
        home: Option<Holder>,
        /// Whose Unix user the unit starts it as.
        unit_user: Holder,
        /// Who owns the newest user.
        user: Option<Holder>,
        /// Whether the former holder's processes run beside the service.
        strays: bool,
        /// Whether files of the former holder lie outside of the home.
        litter: bool,
        runs: bool,
        config_written: bool,
    }

    impl World {
        fn there(&self) -> There {
            let unit = if self.has_unit { UnitOwner::Platform } else { UnitOwner::Nobody };
            There { unit, has_home: self.home.is_some(), is_unit_of_owner: self.user == Some(self.unit_user) }
        }

        fn take(&mut self, step: Step) {
            match step {
                Step::Stop | Step::StopForGood => self.runs = false,
                Step::Vacate => (self.strays, self.litter) = (false, false),
                Step::PutHomeAway => (self.home, self.config_written) = (None, false),
                Step::RemoveUser => self.user = None,
                Step::MakeUser => {
                    if self.home.is_none() {
                        (self.user, self.home) = (Some(Holder::Next), Some(Holder::Next));
                    }
                }
                Step::WriteUnit => self.unit_user = self.user.unwrap_or(Holder::Former),
                Step::WriteConfig => self.config_written = true,
                Step::Start | Step::Restart => self.runs = self.has_unit,
                Step::EnableUnit | Step::RemoveUnit | Step::Reload => {}
            }
        }

        fn shows_former_data(&self) -> bool {
            let is_former = self.home == Some(Holder::Former) || self.unit_user == Holder::Former;
            self.runs && (is_former || self.strays || self.litter)
        }
    }

    fn worlds() -> impl Strategy<Value = World> {
        (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(has_unit, has_home, strays, litter, runs)| World {
                has_unit,
                home: has_home.then_some(Holder::Former),
                unit_user: Holder::Former,
                user: Some(Holder::Former),
                strays,
                litter,
                runs: runs && has_unit,
                config_written: false,
            },
        )
    }

    proptest! {
        /// Broken off anywhere and begun again, a cleaning never starts the instance with anything of the former holder,
        /// and it ends with nothing of theirs.
        #[test]
        fn fuzz_a_cleaning_shows_nobodys_data_to_another(
            world in worlds(),
            breaks in proptest::collection::vec(0usize..9, 0..5),
        ) {
            let mut world = world;
            for broken_after in breaks.into_iter().map(Some).chain([None]) {
                let was_stopped_by_us = !world.runs;
                for step in clean(world.there()).into_iter().take(broken_after.unwrap_or(usize::MAX)) {
                    world.take(step);
                    let started = world.runs && was_stopped_by_us || step == Step::Start;
                    prop_assert!(!(started && world.shows_former_data()), "{:?} after {:?}", world, step);
                }
            }
            prop_assert!(!world.shows_former_data() && !world.strays && !world.litter, "{:?}", world);
            prop_assert_eq!(world.home, Some(Holder::Next));
            prop_assert!(world.config_written && world.runs == world.has_unit, "{:?}", world);
        }
    }

    #[test]
    fn a_strangers_unit_is_neither_stopped_nor_removed() {
        for unit in [UnitOwner::Stranger, UnitOwner::Nobody] {
            assert_eq!(retire_service(There { unit, has_home: true, is_unit_of_owner: true }), vec![]);
        }
        assert_eq!(
            retire_service(There { unit: UnitOwner::Adopted, has_home: true, is_unit_of_owner: true }),
            vec![Step::StopForGood]
        );
        let ours = retire_service(There { unit: UnitOwner::Platform, has_home: true, is_unit_of_owner: true });
        assert_eq!(ours, vec![Step::StopForGood, Step::RemoveUnit]);
    }

    #[test]
    fn a_home_that_is_made_again_gets_a_unit_of_its_new_user() {
        let there = There { unit: UnitOwner::Platform, has_home: false, is_unit_of_owner: true };
        assert_eq!(init(there), vec![Step::MakeUser, Step::WriteUnit, Step::WriteConfig]);
        let there = There { has_home: true, ..there };
        assert_eq!(init(there), vec![Step::MakeUser, Step::WriteConfig]);
        let broken_off = There { is_unit_of_owner: false, ..there };
        assert_eq!(init(broken_off), vec![Step::MakeUser, Step::WriteUnit, Step::WriteConfig]);
        assert_eq!(retire_home(there), vec![Step::Vacate, Step::PutHomeAway, Step::RemoveUser]);
        assert_eq!(provision().last(), Some(&Step::Restart), "it starts when all is written");
    }
}

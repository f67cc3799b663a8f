//! Quota units of LLM gateways. Ours are 500,000 to the dollar. A gateway's administrator may choose another number;
//! only this module converts.

/// Our units per dollar.
pub const UNITS_PER_USD: i64 = 500_000;

/// A gateway's own units per dollar, in millionths of a unit, because gateways store a decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerUsd(i128);

const MILLION: i128 = 1_000_000;

impl PerUsd {
    /// The default of every gateway.
    pub const USUAL: PerUsd = PerUsd(UNITS_PER_USD as i128 * MILLION);

    /// `None` for an impossible value: zero, negative, or not a number.
    pub fn new(units: f64) -> Option<PerUsd> {
        // Outside of this range the conversions would round to zero or overflow.
        (1e-6..=1e12).contains(&units).then(|| PerUsd((units * MILLION as f64).round() as i128))
    }

    pub fn get(self) -> f64 {
        self.0 as f64 / MILLION as f64
    }

    /// Converts the gateway's units to ours, rounded to the nearest.
    pub fn to_ours(self, theirs: i64) -> i64 {
        divide(i128::from(theirs) * i128::from(UNITS_PER_USD) * MILLION, self.0)
    }

    /// Converts our units to the gateway's, rounded to the nearest.
    pub fn to_theirs(self, ours: i64) -> i64 {
        divide(i128::from(ours) * self.0, i128::from(UNITS_PER_USD) * MILLION)
    }
}

fn divide(number: i128, by: i128) -> i64 {
    let rounded = (number + by / 2).div_euclid(by);
    i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_number_changes_nothing() {
        for units in [0, 1, 7, -3, 500_000, i64::MAX, i64::MIN] {
            assert_eq!(PerUsd::USUAL.to_ours(units), units);
            assert_eq!(PerUsd::USUAL.to_theirs(units), units);
        }
        assert_eq!(PerUsd::new(500_000.0), Some(PerUsd::USUAL));
    }

    #[test]
    fn another_number_scales_and_rounds_to_the_nearest() {
        let tenth = PerUsd::new(50_000.0).unwrap();
        assert_eq!((tenth.to_ours(8), tenth.to_theirs(80)), (80, 8));
        assert_eq!(tenth.to_theirs(84), 8);
        assert_eq!(tenth.to_theirs(85), 9);
        let odd = PerUsd::new(333_333.5).unwrap();
        assert_eq!(odd.to_ours(2), 3);
        assert_eq!(PerUsd::new(1.0).unwrap().to_ours(3), 1_500_000);
        assert_eq!(PerUsd::new(1.0).unwrap().to_ours(i64::MAX), i64::MAX, "nothing overflows");
        assert_eq!(PerUsd::new(1.0).unwrap().to_ours(i64::MIN), i64::MIN);
        assert_eq!(tenth.get(), 50_000.0);
    }

    #[test]
    fn what_is_no_number_of_units_is_refused() {
        for units in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e30] {
            assert_eq!(PerUsd::new(units), None, "{units}");
        }
    }
}

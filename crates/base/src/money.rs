//! Estimated cost by the spec's price table. Sums are integers and are rounded only when they are shown.

/// A price in billionths of a dollar per 1,000 tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price(i64);

impl Price {
    /// The price of a model in the spec's table.
    pub fn of(model: &str) -> Price {
        Price(match model {
            "gpt-4o" => 2_500_000,
            "gpt-4o-mini" => 150_000,
            "claude-opus-4-6" => 15_000_000,
            "claude-sonnet-4-6" => 3_000_000,
            _ => 2_000_000,
        })
    }

    pub const fn from_billionths(price: i64) -> Price {
        Price(price)
    }

    pub const fn billionths(self) -> i64 {
        self.0
    }

    /// A price given in dollars per 1,000 tokens; `None` if it is negative or absurdly high.
    pub fn from_usd(usd: f64) -> Option<Price> {
        let billionths = (usd * 1e9).round();
        // A price that would round to 0 is refused: it would make the model free.
        let is_lost = usd > 0.0 && billionths == 0.0;
        (!is_lost && (0.0..=1e15).contains(&billionths)).then_some(Price(billionths as i64))
    }

    /// Dollars per 1,000 tokens.
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The cost of `tokens` in quota units, rounded up.
    pub fn quota(self, tokens: i64) -> i64 {
        // tokens × dollars per 1,000 × 500 = tokens × billionths / 2,000,000
        let scaled = i128::from(tokens.max(0)) * i128::from(self.0);
        i64::try_from((scaled + 1_999_999) / 2_000_000).unwrap_or(i64::MAX)
    }
}

/// What was spent, in the gateway's units: 500,000 are one dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spend(pub i64);

impl Spend {
    /// Dollars, to six decimals: one unit is exactly two millionths.
    pub fn usd(self) -> f64 {
        (i128::from(self.0) * 2) as f64 / 1_000_000.0
    }

    /// Dollars, to nine decimals: these units and a rest in billionths of a dollar.
    pub fn exact_usd(self, rest: i64) -> String {
        let nano = i128::from(self.0) * 2_000 + i128::from(rest);
        let (sign, nano) = (if nano < 0 { "-" } else { "" }, nano.unsigned_abs());
        format!("{sign}{}.{:09}", nano / 1_000_000_000, nano % 1_000_000_000)
    }
}

/// A sum of estimates, rounded once, when it is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate {
    /// Billionths of a dollar, times 1,000.
    scaled: i128,
}

impl Estimate {
    pub fn add(&mut self, tokens: i64, price: Price) {
        self.scaled += i128::from(tokens) * i128::from(price.0);
    }

    /// Dollars, to six decimals.
    pub fn usd(self) -> f64 {
        let per_micro = 1_000 * 1_000;
        let micros = (self.scaled + per_micro / 2).div_euclid(per_micro);
        micros as f64 / 1_000_000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(tokens: i64, model: &str) -> f64 {
        let mut estimate = Estimate::default();
        estimate.add(tokens, Price::of(model));
        estimate.usd()
    }

    #[test]
    fn the_table_is_the_specs() {
        for (model, per_1k) in [
            ("gpt-4o", 0.0025),
            ("gpt-4o-mini", 0.00015),
            ("claude-opus-4-6", 0.015),
            ("claude-sonnet-4-6", 0.003),
            ("anything", 0.002),
            ("", 0.002),
        ] {
            assert_eq!(cost(1000, model), per_1k, "{model}");
        }
    }

    #[test]
    fn quota_is_rounded_up_and_two_millionths_a_unit() {
        for (model, tokens, quota) in [
            ("gpt-4o", 0, 0),
            ("gpt-4o", 1, 2),
            ("gpt-4o", 1000, 1250),
            ("gpt-4o-mini", 1, 1),
            ("gpt-4o-mini", 1000, 75),
            ("claude-opus-4-6", 3, 23),
        ] {
            assert_eq!(Price::of(model).quota(tokens), quota, "{tokens} of {model}");
        }
        assert_eq!(Spend(1).usd(), 0.000002);
        assert_eq!(Spend(500_000).usd(), 1.0);
        assert_eq!(Spend(500_000).exact_usd(0), "1.000000000");
        assert_eq!(Spend(3).exact_usd(-800), "0.000005200");
        assert_eq!(Spend(0).exact_usd(-1), "-0.000000001");
        assert_eq!(Price::from_usd(0.0025), Some(Price::of("gpt-4o")));
        assert_eq!(Price::from_usd(-1.0), None);
        assert_eq!(Price::from_usd(1e-12), None, "it would be 0");
        assert_eq!(Price::from_usd(f64::NAN), None);
    }

    #[test]
    fn several_instances_are_rounded_once() {
        let mut estimate = Estimate::default();
        for _ in 0..3 {
            // Each costs 0.15 of a millionth: three round down to nothing, four round up to one millionth.
            estimate.add(1, Price::of("gpt-4o-mini"));
        }
        assert_eq!(estimate.usd(), 0.0);
        estimate.add(1, Price::of("gpt-4o-mini"));
        assert_eq!(estimate.usd(), 0.000001);
        assert!(cost(i64::MAX, "claude-opus-4-6") > 138_350_580_552_821.0, "nothing overflows");
    }
}

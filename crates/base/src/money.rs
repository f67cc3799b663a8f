//! Estimated cost: the spec's price table, in whole numbers until the very end.

/// A price in billionths of a dollar per 1,000 tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price(i64);

impl Price {
    /// What a model costs by the spec's table.
    pub fn of(model: &str) -> Price {
        Price(match model {
            "gpt-4o" => 2_500_000,
            "gpt-4o-mini" => 150_000,
            "claude-opus-4-6" => 15_000_000,
            "claude-sonnet-4-6" => 3_000_000,
            _ => 2_000_000,
        })
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
    fn several_instances_are_rounded_once() {
        let mut estimate = Estimate::default();
        for _ in 0..3 {
            // 0.15 of a millionth each: alone nothing, together half of one.
            estimate.add(1, Price::of("gpt-4o-mini"));
        }
        assert_eq!(estimate.usd(), 0.0);
        estimate.add(1, Price::of("gpt-4o-mini"));
        assert_eq!(estimate.usd(), 0.000001);
        assert!(cost(i64::MAX, "claude-opus-4-6") > 138_350_580_552_821.0, "nothing overflows");
    }
}

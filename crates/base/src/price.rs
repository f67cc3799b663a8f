//! What a request costs: the prices of a model by kind of token, by service tier and by the length of the input. Sums are
//! integers; the cost is rounded once.

use crate::money::Price;

/// Billionths of a dollar in one unit of quota: 500,000 units are one dollar.
pub const NANO_PER_UNIT: i64 = 2_000;
/// $100,000 per million tokens. A higher price is a mistake.
const MOST: f64 = 1e14;

/// A price in billionths of a dollar per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PerMillion(i64);

impl PerMillion {
    pub const fn from_billionths(price: i64) -> PerMillion {
        PerMillion(price)
    }

    pub const fn billionths(self) -> i64 {
        self.0
    }

    /// A price given in dollars per million tokens; `None` if it is negative, absurdly high, or so low that it would be
    /// rounded to nothing.
    pub fn from_usd(usd: f64) -> Option<PerMillion> {
        let billionths = (usd * 1e9).round();
        let is_lost = usd > 0.0 && billionths == 0.0;
        (!is_lost && (0.0..=MOST).contains(&billionths)).then_some(PerMillion(billionths as i64))
    }

    /// Dollars per million tokens.
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// The service tier that a request is billed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tier {
    #[default]
    Standard,
    Flex,
    Priority,
    Batch,
}

impl Tier {
    pub const ALL: [Tier; 4] = [Tier::Standard, Tier::Flex, Tier::Priority, Tier::Batch];

    pub const fn as_str(self) -> &'static str {
        match self {
            Tier::Standard => "standard",
            Tier::Flex => "flex",
            Tier::Priority => "priority",
            Tier::Batch => "batch",
        }
    }

    pub fn parse(text: &str) -> Option<Tier> {
        Tier::ALL.into_iter().find(|tier| tier.as_str() == text)
    }

    /// What a provider's answer says. Its names for the usual tier, and names that are not known here, are the standard
    /// one.
    pub fn said(text: &str) -> Tier {
        Tier::parse(text).unwrap_or_default()
    }
}

/// The prices of the kinds of tokens; `None` is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Input that was neither read from a cache nor written into one.
    pub input: Option<PerMillion>,
    /// All output, reasoning included.
    pub output: Option<PerMillion>,
    pub cache_read: Option<PerMillion>,
    pub cache_write: Option<PerMillion>,
    /// What is written into a cache that is kept for an hour.
    pub cache_write_1h: Option<PerMillion>,
}

impl Rate {
    pub fn is_empty(&self) -> bool {
        *self == Rate::default()
    }
}

/// The prices of one tier, for requests whose input is longer than `above` tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierRate {
    pub tier: Tier,
    pub above: i64,
    pub rate: Rate,
}

/// The tokens of a request, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub input: i64,
    pub cache_read: i64,
    pub cache_write: i64,
    pub cache_write_1h: i64,
    /// Reasoning included.
    pub output: i64,
    /// The largest input that the model read at once, where the counts are the sum of several.
    pub largest_prompt: Option<i64>,
}

impl Counts {
    /// Input and output of which nothing more is known.
    pub fn plain(input: i64, output: i64) -> Counts {
        Counts { input, output, ..Counts::default() }
    }

    /// All input.
    fn prompt(&self) -> i128 {
        [self.input, self.cache_read, self.cache_write, self.cache_write_1h].into_iter().map(count).sum()
    }

    /// The input that decides whether the prices of long inputs hold.
    fn longest(&self) -> i128 {
        self.largest_prompt.map_or_else(|| self.prompt(), |largest| count(largest).min(self.prompt()))
    }
}

/// What a request cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// In units, rounded up: whatever costs something counts against a quota.
    pub quota: i64,
    /// The exact cost less `quota`, in billionths of a dollar: 0, or less.
    pub rest: i64,
}

impl Cost {
    /// The exact cost in billionths of a dollar.
    pub fn billionths(self) -> i128 {
        i128::from(self.quota) * i128::from(NANO_PER_UNIT) + i128::from(self.rest)
    }

    /// Of a sum of tokens times prices per million.
    fn of(scaled: i128) -> Cost {
        let unit = i128::from(NANO_PER_UNIT) * 1_000_000;
        let exact = (scaled + 500_000) / 1_000_000;
        let Ok(quota) = i64::try_from((scaled + unit - 1) / unit) else { return Cost { quota: i64::MAX, rest: 0 } };
        let rest = exact - i128::from(quota) * i128::from(NANO_PER_UNIT);
        // Less than one unit and a half, so it fits.
        Cost { quota, rest: rest as i64 }
    }
}

/// The prices of a model at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prices {
    /// The one price for every kind of token. It is in force where the prices by kind are not known.
    pub single: Price,
    /// The prices by kind; none where they are unknown, or where the single price was edited.
    pub rates: Vec<TierRate>,
}

impl Prices {
    pub fn single(price: Price) -> Prices {
        Prices { single: price, rates: vec![] }
    }

    /// Whether the prices by kind are in force.
    pub fn by_kind(&self) -> bool {
        !self.rates.is_empty()
    }

    /// The prices for a tier and a length of the input. What a row leaves open is taken from the tier's shorter inputs,
    /// then from the standard tier.
    pub fn rate(&self, prompt: i64, tier: Tier) -> Rate {
        self.rate_for(i128::from(prompt), tier)
    }

    fn rate_for(&self, prompt: i128, tier: Tier) -> Rate {
        let is_long = |row: &&TierRate| row.above == 0 || prompt > i128::from(row.above);
        let is_of_tier = |row: &&TierRate| row.tier == tier || row.tier == Tier::Standard;
        let mut rows: Vec<&TierRate> = self.rates.iter().filter(is_of_tier).filter(is_long).collect();
        rows.sort_by_key(|row| (row.tier != tier, std::cmp::Reverse(row.above)));
        let first = |kind: fn(&Rate) -> Option<PerMillion>| rows.iter().find_map(|row| kind(&row.rate));
        Rate {
            input: first(|rate| rate.input),
            output: first(|rate| rate.output),
            cache_read: first(|rate| rate.cache_read),
            cache_write: first(|rate| rate.cache_write),
            cache_write_1h: first(|rate| rate.cache_write_1h),
        }
    }

    /// The cost of a request. A cache without a price of its own costs what input costs. If the price of input, or of the
    /// output that there is, is unknown, all tokens cost the single price.
    pub fn cost(&self, counts: &Counts, tier: Tier) -> Cost {
        let rate = self.rate_for(counts.longest(), tier);
        Cost::of(scaled(&rate, counts).unwrap_or_else(|| {
            let tokens = counts.prompt() + count(counts.output);
            tokens * i128::from(self.single.billionths()) * 1_000
        }))
    }

    /// The most units that a request of this size can cost: whatever of it is written into a cache, and in whatever tier.
    pub fn most(&self, input: i64, output: i64) -> i64 {
        let dearest = |tier: Tier| {
            let mut rate = self.rate(input, tier);
            rate.input = rate.input.map(|price| {
                let caches = [rate.cache_write, rate.cache_write_1h];
                caches.into_iter().flatten().fold(price, PerMillion::max)
            });
            scaled(&rate, &Counts::plain(input, output)).map(|scaled| Cost::of(scaled).quota)
        };
        let by_kind = Tier::ALL.into_iter().filter_map(dearest).max();
        by_kind.unwrap_or_else(|| self.cost(&Counts::plain(input, output), Tier::Standard).quota)
    }
}

/// Nobody is paid for a negative count.
fn count(tokens: i64) -> i128 {
    i128::from(tokens.max(0))
}

/// Tokens times prices; `None` if a price is unknown.
fn scaled(rate: &Rate, counts: &Counts) -> Option<i128> {
    let input = rate.input?;
    let output = match rate.output {
        Some(output) => output,
        None if counts.output <= 0 => input,
        None => return None,
    };
    let cache_write = rate.cache_write.unwrap_or(input);
    let parts = [
        (counts.input, input),
        (counts.cache_read, rate.cache_read.unwrap_or(input)),
        (counts.cache_write, cache_write),
        (counts.cache_write_1h, rate.cache_write_1h.unwrap_or(cache_write)),
        (counts.output, output),
    ];
    Some(parts.into_iter().map(|(tokens, price)| count(tokens) * i128::from(price.0)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn usd(price: f64) -> Option<PerMillion> {
        Some(PerMillion::from_usd(price).unwrap())
    }

    /// Prices like those of a model with caches, a dearer long input and two tiers.
    fn prices() -> Prices {
        let row = |tier, above, rate| TierRate { tier, above, rate };
        let standard = Rate {
            input: usd(2.0),
            output: usd(12.0),
            cache_read: usd(0.2),
            cache_write: usd(2.5),
            cache_write_1h: usd(4.0),
        };
        let long = Rate { input: usd(4.0), output: usd(18.0), cache_read: usd(0.4), ..Rate::default() };
        let flex = Rate { input: usd(1.0), output: usd(6.0), ..Rate::default() };
        Prices {
            single: Price::from_usd(0.002).unwrap(),
            rates: vec![row(Tier::Standard, 0, standard), row(Tier::Standard, 200_000, long), row(Tier::Flex, 0, flex)],
        }
    }

    #[test]
    fn each_kind_has_its_price() {
        let all = Counts {
            input: 10,
            cache_read: 1000,
            cache_write: 100,
            cache_write_1h: 10,
            output: 50,
            ..Counts::default()
        };
        // 20,000 + 200,000 + 250,000 + 40,000 + 600,000 billionths.
        let cost = prices().cost(&all, Tier::Standard);
        assert_eq!((cost.billionths(), cost.quota, cost.rest), (1_110_000, 555, 0));
        assert_eq!(prices().cost(&Counts::plain(1, 0), Tier::Standard), Cost { quota: 1, rest: 0 });
        let one_read = Counts { cache_read: 1, ..Counts::default() };
        assert_eq!(prices().cost(&one_read, Tier::Standard), Cost { quota: 1, rest: -1_800 }, "rounded up, and exact");
        assert_eq!(prices().cost(&Counts::default(), Tier::Standard), Cost::default());
        assert_eq!(prices().cost(&Counts::plain(-5, -5), Tier::Standard), Cost::default());
    }

    #[test]
    fn a_long_input_and_a_tier_have_their_prices() {
        let at = |input, tier| prices().cost(&Counts::plain(input, 0), tier).billionths();
        assert_eq!(at(200_000, Tier::Standard), 200_000 * 2_000, "up to the limit, not above it");
        assert_eq!(at(200_001, Tier::Standard), 200_001 * 4_000, "all of it, not only the rest");
        // All input decides, read from a cache or not; a kind that the row leaves open has the price of shorter inputs.
        let cached = Counts { cache_read: 200_001, cache_write: 1, ..Counts::default() };
        assert_eq!(prices().cost(&cached, Tier::Standard).billionths(), 200_001 * 400 + 2_500);
        // Of several inputs that are counted together the largest one decides.
        let several = |largest| Counts { largest_prompt: Some(largest), ..Counts::plain(300_000, 0) };
        assert_eq!(prices().cost(&several(200_000), Tier::Standard).billionths(), 300_000 * 2_000);
        assert_eq!(prices().cost(&several(200_001), Tier::Standard).billionths(), 300_000 * 4_000);
        assert_eq!(at(1_000, Tier::Flex), 1_000 * 1_000);
        assert_eq!(at(1_000, Tier::Priority), 1_000 * 2_000, "a tier without prices is the standard one");
        let flex = prices().rate(1_000, Tier::Flex);
        assert_eq!((flex.output, flex.cache_read), (usd(6.0), usd(0.2)));
    }

    #[test]
    fn what_is_unknown_costs_the_single_price() {
        let single = Prices::single(Price::from_usd(0.002).unwrap());
        let counts = Counts {
            input: 10,
            cache_read: 1000,
            cache_write: 100,
            cache_write_1h: 10,
            output: 50,
            ..Counts::default()
        };
        assert_eq!(single.cost(&counts, Tier::Flex).quota, Price::from_usd(0.002).unwrap().quota(1170));
        let rate = |input, output| Rate { input, output, ..Rate::default() };
        let with = |rate| Prices { rates: vec![TierRate { rate, ..TierRate::default() }], ..single.clone() };
        // The price of output is unknown: an embedding has none, a chat costs the single price.
        let only_input = with(rate(usd(0.02), None));
        assert_eq!(only_input.cost(&Counts::plain(1_000_000, 0), Tier::Standard).billionths(), 20_000_000);
        assert_eq!(only_input.cost(&Counts::plain(1, 1), Tier::Standard).billionths(), 4_000);
        assert_eq!(with(rate(None, usd(3.0))).cost(&Counts::plain(1, 0), Tier::Standard).billionths(), 2_000);
        // A cache without a price is input.
        let no_cache = with(rate(usd(3.0), usd(15.0)));
        assert_eq!(no_cache.cost(&counts, Tier::Standard), no_cache.cost(&Counts::plain(1120, 50), Tier::Standard));
        // Free is not unknown.
        assert_eq!(with(rate(usd(0.0), usd(0.0))).cost(&counts, Tier::Standard), Cost::default());
    }

    #[test]
    fn nothing_overflows() {
        let dear = Prices { single: Price::from_billionths(1_000_000_000_000_000), ..prices() };
        for counts in [Counts::plain(1_000_000_000, 1_000_000_000), Counts::plain(i64::MAX, i64::MAX)] {
            for prices in [&dear, &Prices::single(dear.single)] {
                let cost = prices.cost(&counts, Tier::Standard);
                assert!(cost.quota > 0 && (-NANO_PER_UNIT..=0).contains(&cost.rest), "{cost:?}");
            }
        }
        let cost = prices().cost(&Counts::plain(1_000_000_000, 1_000_000_000), Tier::Standard);
        assert_eq!(cost.billionths(), 1_000_000_000 * 4_000 + 1_000_000_000 * 18_000);
    }

    #[test]
    fn a_price_is_dollars_per_million() {
        assert_eq!(PerMillion::from_usd(0.0375).map(PerMillion::billionths), Some(37_500_000));
        assert_eq!(PerMillion::from_usd(0.0375).map(PerMillion::usd), Some(0.0375));
        for refused in [-1.0, 1e-12, 1e9, f64::NAN, f64::INFINITY] {
            assert_eq!(PerMillion::from_usd(refused), None, "{refused}");
        }
        assert_eq!(Tier::said("default"), Tier::Standard);
        assert_eq!(Tier::said("flex"), Tier::Flex);
        for tier in Tier::ALL {
            assert_eq!(Tier::parse(tier.as_str()), Some(tier));
        }
    }

    fn price() -> impl Strategy<Value = Option<PerMillion>> {
        prop::option::of((0i64..=100_000_000_000_000).prop_map(PerMillion))
    }

    prop_compose! {
        fn rate()(input in price(), output in price(), cache_read in price(), cache_write in price(), cache_write_1h in price()) -> Rate {
            Rate { input, output, cache_read, cache_write, cache_write_1h }
        }
    }

    prop_compose! {
        fn counts()(input in 0i64..=1_000_000_000, cache_read in 0i64..=1_000_000_000, cache_write in 0i64..=1_000_000_000,
            cache_write_1h in 0i64..=1_000_000_000, output in 0i64..=1_000_000_000) -> Counts {
            Counts { input, cache_read, cache_write, cache_write_1h, output, largest_prompt: None }
        }
    }

    proptest! {
        /// The cost is the sum of its parts, each times its price, and rounded once.
        #[test]
        fn the_cost_is_the_sum_of_its_parts(rate in rate(), counts in counts(), single in 0i64..1_000_000_000_000) {
            let prices = Prices { single: Price::from_billionths(single), rates: vec![TierRate { rate, ..TierRate::default() }] };
            let cost = prices.cost(&counts, Tier::Standard);
            let known = rate.input.is_some() && (rate.output.is_some() || counts.output == 0);
            let of = |tokens: i64, kinds: &[Option<PerMillion>]| {
                let single = i128::from(single) * 1_000;
                let price = if known { kinds.iter().flatten().next().map_or(0, |price| i128::from(price.0)) } else { single };
                i128::from(tokens) * price
            };
            let millionths = of(counts.input, &[rate.input])
                + of(counts.cache_read, &[rate.cache_read, rate.input])
                + of(counts.cache_write, &[rate.cache_write, rate.input])
                + of(counts.cache_write_1h, &[rate.cache_write_1h, rate.cache_write, rate.input])
                + of(counts.output, &[rate.output]);
            prop_assert_eq!(cost.billionths(), (millionths + 500_000).div_euclid(1_000_000));
            prop_assert!((-NANO_PER_UNIT..=0).contains(&cost.rest), "{:?}", cost);
            prop_assert!(i128::from(cost.quota) * 2_000_000_000 >= millionths, "rounded up");
        }

        /// More tokens never cost less, and a reservation is never less than what the request costs.
        #[test]
        fn a_reservation_is_enough(rate in rate(), flex in rate(), counts in counts(), tier in prop::sample::select(Tier::ALL.to_vec())) {
            let row = |tier, rate| TierRate { tier, above: 0, rate };
            let prices = Prices { single: Price::from_billionths(2_000_000), rates: vec![row(Tier::Standard, rate), row(Tier::Flex, flex)] };
            let more = Counts { output: counts.output + 1, ..counts };
            // Only where output has a price for both, else one of them costs the single price.
            if rate.output.is_some() {
                prop_assert!(prices.cost(&more, tier).billionths() >= prices.cost(&counts, tier).billionths());
            }
            let no_cache_discount = Counts::plain(counts.input + counts.cache_write, counts.output);
            let written = Counts { cache_read: 0, cache_write_1h: 0, ..counts };
            let reserved = prices.most(no_cache_discount.input, no_cache_discount.output);
            if rate.input.is_some() && rate.output.is_some() {
                prop_assert!(reserved >= prices.cost(&written, tier).quota);
            }
        }

        /// The single price costs what it always did.
        #[test]
        fn the_single_price_is_as_before(counts in counts(), single in 0i64..1_000_000_000_000) {
            let price = Price::from_billionths(single);
            let tokens = counts.input + counts.cache_read + counts.cache_write + counts.cache_write_1h + counts.output;
            prop_assert_eq!(Prices::single(price).cost(&counts, Tier::Standard).quota, price.quota(tokens));
        }
    }
}

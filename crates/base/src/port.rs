//! Gateway ports: the distance between them, and the choice of the next one.

use serde::{Deserialize, Deserializer};

/// A port that an instance may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GatewayPort(u16);

impl GatewayPort {
    /// The ports of two instances on one server differ by at least this much: a gateway also uses ports next to its
    /// own.
    pub const SPACING: i64 = 10;
    const FIRST: i64 = 18789;
    /// Ports that we assign are this far apart, because newer releases derive more ports from their own.
    const STEP: i64 = 120;

    pub fn get(self) -> i64 {
        i64::from(self.0)
    }

    pub fn number(self) -> u16 {
        self.0
    }

    /// Whether this port is far enough from all of `taken`.
    pub fn fits(self, taken: &[GatewayPort]) -> bool {
        taken.iter().all(|taken| (taken.get() - self.get()).abs() >= GatewayPort::SPACING)
    }

    /// The next port that is free among `taken`.
    pub fn next(taken: &[GatewayPort]) -> Option<GatewayPort> {
        let far = (GatewayPort::FIRST..=65535).step_by(GatewayPort::STEP as usize);
        let near = (1024..=65535).step_by(GatewayPort::SPACING as usize);
        far.chain(near).filter_map(|p| u16::try_from(p).ok().map(GatewayPort)).find(|p| p.fits(taken))
    }
}

impl std::fmt::Display for GatewayPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<i64> for GatewayPort {
    type Error = &'static str;

    fn try_from(port: i64) -> Result<GatewayPort, &'static str> {
        match port {
            1024..=65535 => Ok(GatewayPort(port as u16)),
            _ => Err("must be from 1024 to 65535"),
        }
    }
}

impl<'de> Deserialize<'de> for GatewayPort {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<GatewayPort, D::Error> {
        GatewayPort::try_from(i64::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

impl utoipa::PartialSchema for GatewayPort {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::Integer)
            .minimum(Some(1024))
            .maximum(Some(65535))
            .examples([18789])
            .into()
    }
}
impl utoipa::ToSchema for GatewayPort {
    fn name() -> std::borrow::Cow<'static, str> {
        "GatewayPort".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_next_port_is_far_enough_from_all(taken in proptest::collection::vec(1024i64..=65535, 0..400)) {
            let taken: Vec<_> = taken.into_iter().map(|port| GatewayPort::try_from(port).unwrap()).collect();
            let next = GatewayPort::next(&taken).unwrap();
            prop_assert!(next.fits(&taken));
        }
    }

    #[test]
    fn a_full_server_has_no_next_port_and_no_panic() {
        let taken: Vec<_> = (1024..=65535).step_by(10).map(|port| GatewayPort::try_from(port).unwrap()).collect();
        assert_eq!(GatewayPort::next(&taken), None);
        assert_eq!(GatewayPort::next(&[]).unwrap().get(), 18789);
        assert_eq!(GatewayPort::next(&[GatewayPort::try_from(18789).unwrap()]).unwrap().get(), 18909);
    }
}

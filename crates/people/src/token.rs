//! The two kinds of JWT: HS256, each side with a key and an audience of its own.

use base::{Error, Kind, Result, Secret};
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const ISSUER: &str = "tidepool";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    Employee,
    Admin,
}

impl Audience {
    pub fn as_str(self) -> &'static str {
        match self {
            Audience::Employee => "employee",
            Audience::Admin => "admin",
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Claims {
    pub iss: String,
    pub aud: String,
    pub sub: String,
    pub email: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    pub iat: i64,
    pub exp: i64,
    pub jti: String,
}

/// The claims of a step token: the account has shown its first factor and must show or enrol its second. The token has
/// an audience of its own, so that no other request accepts it.
#[derive(Debug, Serialize, Deserialize)]
pub struct StepClaims {
    pub iss: String,
    pub aud: String,
    pub sub: String,
    /// How the first factor was shown, for the audit log.
    pub how: String,
    pub iat: i64,
    pub exp: i64,
    pub jti: String,
}

/// How long a user may take for the second factor, enrolment included.
pub const STEP_LIFETIME: SignedDuration = SignedDuration::from_mins(10);

/// The account that a token is for.
pub struct Bearer<'a> {
    pub id: &'a str,
    pub email: &'a str,
    pub role: Option<&'a str>,
    /// The account's `tokens_from`: tokens issued before that second are invalid.
    pub tokens_from: i64,
}

pub struct TokenKey {
    encoding: EncodingKey,
    decoding: DecodingKey,
    audience: Audience,
    lifetime: SignedDuration,
}

impl TokenKey {
    pub fn new(secret: &Secret, audience: Audience, lifetime: SignedDuration) -> TokenKey {
        let bytes = secret.expose().as_bytes();
        TokenKey {
            encoding: EncodingKey::from_secret(bytes),
            decoding: DecodingKey::from_secret(bytes),
            audience,
            lifetime,
        }
    }

    pub fn issue(&self, bearer: Bearer<'_>, now: Timestamp) -> Result<Secret> {
        let claims = Claims {
            iss: ISSUER.into(),
            aud: self.audience.as_str().into(),
            sub: bearer.id.into(),
            email: bearer.email.into(),
            role: bearer.role.map(Into::into),
            // Ending all tokens moves `tokens_from` to the next second. A token issued later in the same second must
            // carry `tokens_from` as its time, or it would count as ended.
            iat: now.as_second().max(bearer.tokens_from),
            exp: (now + self.lifetime).as_second(),
            jti: base::id::fresh(),
        };
        self.sign(&claims)
    }

    /// Issues a step token. `now` is the moment before the account was read, as for a session.
    pub fn issue_step(&self, bearer: Bearer<'_>, how: &str, now: Timestamp) -> Result<Secret> {
        let claims = StepClaims {
            iss: ISSUER.into(),
            aud: self.step_audience(),
            sub: bearer.id.into(),
            how: how.into(),
            iat: now.as_second().max(bearer.tokens_from),
            exp: (now + STEP_LIFETIME).as_second(),
            jti: base::id::fresh(),
        };
        self.sign(&claims)
    }

    /// The claims of a token that we issued for this side and that has not expired.
    pub fn read(&self, token: &str, now: Timestamp) -> Result<Claims> {
        let claims: Claims = self.verified(token, self.audience.as_str())?;
        not_expired(claims.exp, now)?;
        Ok(claims)
    }

    /// Like `read`, for a step token.
    pub fn read_step(&self, token: &str, now: Timestamp) -> Result<StepClaims> {
        let claims: StepClaims = self.verified(token, &self.step_audience())?;
        not_expired(claims.exp, now)?;
        Ok(claims)
    }

    fn step_audience(&self) -> String {
        format!("{}-second-factor", self.audience.as_str())
    }

    fn sign(&self, claims: &impl Serialize) -> Result<Secret> {
        let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &self.encoding);
        token.map(Secret::new).map_err(Error::internal)
    }

    fn verified<T: DeserializeOwned>(&self, token: &str, audience: &str) -> Result<T> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_issuer(&[ISSUER]);
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        // `not_expired` checks it, with our own clock and without leeway.
        validation.validate_exp = false;
        let read = jsonwebtoken::decode::<T>(token, &self.decoding, &validation);
        Ok(read.map_err(|e| Error::from(Kind::Unauthorized).with_operator(e))?.claims)
    }
}

fn not_expired(exp: i64, now: Timestamp) -> Result<()> {
    match exp <= now.as_second() {
        true => Err(Error::from(Kind::Unauthorized).with_operator("token expired")),
        false => Ok(()),
    }
}

/// The new `tokens_from` of an account whose tokens all end now.
pub fn end_all(tokens_from: i64, now: Timestamp) -> i64 {
    (now.as_second() + 1).max(tokens_from + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn key(secret: &str, audience: Audience) -> TokenKey {
        TokenKey::new(&Secret::new(secret), audience, SignedDuration::from_hours(12))
    }

    fn bearer() -> Bearer<'static> {
        Bearer { id: "u1", email: "a@example.com", role: None, tokens_from: 0 }
    }

    fn signed(header: Header, claims: serde_json::Value) -> String {
        jsonwebtoken::encode(&header, &claims, &EncodingKey::from_secret(SECRET.as_bytes())).unwrap()
    }

    fn claims() -> serde_json::Value {
        serde_json::json!({"iss": "tidepool", "aud": "employee", "sub": "u1", "email": "a@example.com", "iat": 1, "exp": 4_000_000_000i64, "jti": "j"})
    }

    #[test]
    fn a_token_is_taken_by_its_own_side_until_it_expires() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let employee = key(SECRET, Audience::Employee);
        let token = employee.issue(bearer(), now).unwrap();
        assert_eq!(employee.read(token.expose(), now).unwrap().sub, "u1");
        assert!(key(SECRET, Audience::Admin).read(token.expose(), now).is_err(), "the other audience");
        assert!(key("another secret, another secret, ..", Audience::Employee).read(token.expose(), now).is_err());
        assert!(employee.read(token.expose(), now + SignedDuration::from_hours(12)).is_err(), "expired");
    }

    #[test]
    fn a_token_between_the_two_factors_is_no_session_and_no_session_is_one() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let employee = key(SECRET, Audience::Employee);
        let step = employee.issue_step(bearer(), "password", now).unwrap();
        assert_eq!(employee.read_step(step.expose(), now).unwrap().sub, "u1");
        assert!(employee.read(step.expose(), now).is_err(), "no session");
        assert!(key(SECRET, Audience::Admin).read_step(step.expose(), now).is_err(), "the other side");
        assert!(employee.read_step(step.expose(), now + STEP_LIFETIME).is_err(), "expired");
        let session = employee.issue(bearer(), now).unwrap();
        assert!(employee.read_step(session.expose(), now).is_err(), "a session");
    }

    #[test]
    fn other_algorithms_and_missing_claims_are_refused() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let employee = key(SECRET, Audience::Employee);
        assert!(employee.read(&signed(Header::new(Algorithm::HS256), claims()), now).is_ok());
        assert!(employee.read(&signed(Header::new(Algorithm::HS512), claims()), now).is_err());
        for claim in ["exp", "iss", "aud", "sub"] {
            let mut without = claims();
            without.as_object_mut().unwrap().remove(claim);
            assert!(employee.read(&signed(Header::new(Algorithm::HS256), without), now).is_err(), "no {claim}");
        }
        // {"alg":"none"} with an empty signature
        let good = signed(Header::new(Algorithm::HS256), claims());
        let body = good.split('.').nth(1).unwrap();
        assert!(employee.read(&format!("eyJhbGciOiJub25lIn0.{body}."), now).is_err());
    }

    #[test]
    fn ending_all_tokens_separates_before_from_after_within_one_second() {
        let now = Timestamp::from_millisecond(1_800_000_000_500).unwrap();
        let employee = key(SECRET, Audience::Employee);
        let mut tokens_from = 0;
        for _ in 0..3 {
            let before = employee.issue(Bearer { tokens_from, ..bearer() }, now).unwrap();
            tokens_from = end_all(tokens_from, now);
            let after = employee.issue(Bearer { tokens_from, ..bearer() }, now).unwrap();
            assert!(employee.read(before.expose(), now).unwrap().iat < tokens_from);
            assert!(employee.read(after.expose(), now).unwrap().iat >= tokens_from);
        }
    }

    proptest! {
        #[test]
        fn no_altered_token_is_taken(at in 0usize..1000, with in "[A-Za-z0-9_.-]") {
            let now = Timestamp::from_second(1_800_000_000).unwrap();
            let employee = key(SECRET, Audience::Employee);
            let token = employee.issue(bearer(), now).unwrap();
            let mut chars: Vec<char> = token.expose().chars().collect();
            let at = at % chars.len();
            let last = at == chars.len() - 1;
            chars[at] = with.chars().next().unwrap();
            let altered: String = chars.into_iter().collect();
            // The last letter of base64 carries bits that do not count.
            if altered != token.expose() && !last {
                prop_assert!(employee.read(&altered, now).is_err());
            }
        }

        #[test]
        fn no_text_is_a_token(text in ".*") {
            prop_assert!(key(SECRET, Audience::Employee).read(&text, Timestamp::UNIX_EPOCH).is_err());
        }
    }
}

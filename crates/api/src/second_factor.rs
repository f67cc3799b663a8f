//! Shapes of the second factor that both APIs share.

use base::Secret;
use people::second_factor::{Challenge, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::sso::Arrival;

/// What a login is answered with, in place of a token, by an account that has a second factor or must have one.
#[derive(Serialize, ToSchema)]
pub struct SecondFactorNeeded {
    /// Always true; a login that is finished does not have it.
    #[schema(example = true)]
    mfa_required: bool,
    /// False: show a code with POST /auth/mfa. True: the account has no second factor yet and must set one up, with POST
    /// /auth/mfa/enrolment.
    mfa_enrolment: bool,
    /// Good for these two alone, for this one login: no other request takes it.
    #[schema(example = "eyJhbGciOiJIUzI1NiJ9…")]
    mfa_token: String,
    /// For how many seconds it is good.
    #[schema(example = 600)]
    expires_in: i64,
}

impl From<Challenge> for SecondFactorNeeded {
    fn from(challenge: Challenge) -> SecondFactorNeeded {
        SecondFactorNeeded {
            mfa_required: true,
            mfa_enrolment: challenge.enrolment,
            mfa_token: challenge.token.expose().to_owned(),
            expires_in: challenge.expires_in.as_secs(),
        }
    }
}

impl SecondFactorNeeded {
    pub fn arrival(&self) -> Arrival {
        Arrival::SecondFactor { token: Secret::new(&self.mfa_token), enrolment: self.mfa_enrolment }
    }
}

#[derive(Deserialize, ToSchema)]
pub struct ShowCode {
    /// As POST /auth/login answered it.
    pub mfa_token: String,
    /// The six digits that the authenticator app shows, or a recovery code. Spaces, dashes and case do not matter.
    pub code: Secret,
}

#[derive(Deserialize, ToSchema)]
pub struct BeginInLogin {
    /// As POST /auth/login answered it.
    pub mfa_token: String,
}

/// What an authenticator app needs to know. Shown once; it counts when a first code has confirmed it.
#[derive(Serialize, ToSchema)]
pub struct Enrolment {
    /// In base32, to type into an app.
    secret: String,
    /// The same as an address, for a QR code.
    #[schema(
        example = "otpauth://totp/tidepool:ada@example.com?secret=…&issuer=tidepool&algorithm=SHA1&digits=6&period=30"
    )]
    otpauth_uri: String,
}

impl From<people::second_factor::Enrolment> for Enrolment {
    fn from(enrolment: people::second_factor::Enrolment) -> Enrolment {
        Enrolment { secret: enrolment.secret.expose().to_owned(), otpauth_uri: enrolment.uri.expose().to_owned() }
    }
}

/// Proves that whoever is signed in is the account's owner.
#[derive(Deserialize, ToSchema)]
pub struct Proof {
    /// The current password; accounts without one leave it out.
    pub password: Option<Secret>,
    /// A code of the second factor that is on, or a recovery code.
    pub code: Option<Secret>,
}

#[derive(Deserialize, ToSchema)]
pub struct FirstCode {
    /// The six digits that the app shows for the new secret.
    pub code: Secret,
}

#[derive(Serialize, ToSchema)]
pub struct RecoveryCodes {
    /// Ten codes, each good once in place of a code of the app. They are stored as hashes and cannot be shown again.
    #[schema(example = json!(["abcd-efgh-jkmn-pqrs"]))]
    recovery_codes: Vec<String>,
}

impl From<Vec<Secret>> for RecoveryCodes {
    fn from(codes: Vec<Secret>) -> RecoveryCodes {
        RecoveryCodes { recovery_codes: codes.iter().map(|code| code.expose().to_owned()).collect() }
    }
}

/// What the own account says about its second factor.
#[derive(Serialize, ToSchema)]
pub struct SecondFactor {
    /// False for accounts that sign in through SSO alone, where the identity provider is responsible.
    mfa_available: bool,
    /// Whether a second factor is on.
    mfa_enabled: bool,
    /// Whether this account must have one (TIDEPOOL_MFA_REQUIRED): then it cannot be switched off.
    mfa_required: bool,
    /// How many recovery codes have not been used yet.
    recovery_codes_left: i64,
}

impl From<State> for SecondFactor {
    fn from(state: State) -> SecondFactor {
        SecondFactor {
            mfa_available: state.available,
            mfa_enabled: state.enabled,
            mfa_required: state.required,
            recovery_codes_left: state.recovery_codes_left,
        }
    }
}

/// Somebody else set the account's password, and its owner has not acknowledged it yet.
#[derive(Serialize, ToSchema)]
pub struct PasswordReset {
    /// The administrator; `System` for the command line on the server.
    #[schema(example = "admin@example.com")]
    by: String,
    at: String,
}

impl PasswordReset {
    pub fn new(zone: &base::Zone, reset: people::password_reset::PasswordReset) -> PasswordReset {
        PasswordReset { by: reset.reset_by, at: zone.show(reset.reset_at) }
    }
}

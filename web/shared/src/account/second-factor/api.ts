// What the pages of the second factor ask of the server; each app maps it to its own routes.

/** The account as the login knows it after the first factor. */
export interface LoginStep {
  token: string;
  /** There is no second factor yet: it must be set up first. */
  enrolment: boolean;
}

export interface Enrolment {
  secret: string;
  otpauth_uri: string;
}

export interface Enrolled {
  /** Takes the place of the token that the change has ended. */
  token: string;
  recovery_codes: string[];
}

export interface Proof {
  password?: string;
  code?: string;
}

export interface SecondFactorApi {
  /** Answers the token. */
  showCode: (step: string, code: string) => Promise<string>;
  beginInLogin: (step: string) => Promise<Enrolment>;
  confirmInLogin: (step: string, code: string) => Promise<Enrolled>;
  begin: (proof: Proof) => Promise<Enrolment>;
  confirm: (code: string) => Promise<Enrolled>;
  newRecoveryCodes: (proof: Proof) => Promise<string[]>;
  disable: (proof: Proof) => Promise<unknown>;
  acknowledgeReset: () => Promise<unknown>;
}

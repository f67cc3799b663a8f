// The daily quota of an employee, in tokens.
import type { NumberRange } from '@tidepool/shared/ui/number';

/** Nobody has a quota of 0: the API's 0 is no limit, which has a choice of its own. */
export const QUOTA: NumberRange = { min: 1, max: 1_000_000_000_000 };

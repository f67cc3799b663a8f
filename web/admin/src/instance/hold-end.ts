// When a hold ends that somebody chose by its length.
export const HOLD_CHOICES = ['hour', 'hours', 'tomorrow', 'week', 'other'] as const;
export type HoldChoice = (typeof HOLD_CHOICES)[number];

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The server refuses a longer hold. */
const LONGEST_MS = 30 * DAY_MS;

/** `typed` is a local date and time; null if it is none, or lies outside of what the server takes. */
export function holdEnd(choice: HoldChoice, typed: string, now: number): Date | null {
  switch (choice) {
    case 'hour':
      return new Date(now + HOUR_MS);
    case 'hours':
      return new Date(now + 4 * HOUR_MS);
    case 'tomorrow': {
      // By the calendar, since a day need not have 24 hours.
      const end = new Date(now);
      end.setDate(end.getDate() + 1);
      end.setHours(9, 0, 0, 0);
      return end;
    }
    case 'week':
      return new Date(now + 7 * DAY_MS);
    case 'other': {
      const end = Date.parse(typed);
      return end > now && end <= now + LONGEST_MS ? new Date(end) : null;
    }
  }
}

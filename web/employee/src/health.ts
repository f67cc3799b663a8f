// How an instance's health is said and shown.
import type { Tone } from '@tidepool/shared/ui/badge';
import type { Instance } from './instances-query';
import type { Key } from './messages';

type Health = Instance['status'];

export const HEALTH_TONES: Record<Health, Tone> = {
  healthy: 'good',
  unhealthy: 'bad',
  key_invalid: 'bad',
  rate_limited: 'warn',
  unknown: 'none',
};

export const HEALTH_TEXTS: Record<Health, Key> = {
  healthy: 'health.healthy',
  unhealthy: 'health.unhealthy',
  key_invalid: 'health.keyInvalid',
  rate_limited: 'health.rateLimited',
  unknown: 'health.unknown',
};

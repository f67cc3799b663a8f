// By which way somebody wants to talk to an instance, as this browser remembers it.
import { readStored, writeStored } from '@tidepool/shared/storage';
import type { EngineKind } from './engine/types';

/** `auto` takes the best that works. */
export type Preference = 'auto' | EngineKind;

const KEY = 'tidepool.engine.';

export function storedPreference(instance: string): Preference {
  const stored = readStored(KEY + instance);
  return stored === 'embed' || stored === 'gateway' || stored === 'socket' ? stored : 'auto';
}

export function storePreference(instance: string, preference: Preference) {
  writeStored(KEY + instance, preference === 'auto' ? null : preference);
}

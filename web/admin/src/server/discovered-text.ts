// How a discovered gateway is named and explained, and what its adoption begins with.
import type { DiscoveredGateway } from '../records';
import { en, type AdoptKey, type Translate } from './adopt-texts';

export const canBeAdopted = (gateway: DiscoveredGateway): boolean =>
  gateway.instance_id == null && gateway.obstacle == null;

/** What is there and not known, but has an obstacle. */
export const cannotBeAdopted = (gateway: DiscoveredGateway): boolean =>
  gateway.instance_id == null && gateway.obstacle != null;

/** The unit's or container's name, else its home. */
export const shownName = (gateway: DiscoveredGateway): string => gateway.name || gateway.home || gateway.key;

/** The server's code in words; one of a newer server stays as it is. */
export function obstacleText(obstacle: string, t: Translate): string {
  const key = `adopt.obstacle.${obstacle}`;
  return Object.hasOwn(en, key) ? t(key as AdoptKey) : obstacle;
}

/** What OpenClaw itself calls its units: every user's is called so, and says nothing of whose it is. */
const COMMON_NAMES: readonly string[] = ['openclaw', 'openclaw-gateway'];

/** An id that fits the server's rule: small letters, digits and dashes. */
export function proposedId(gateway: DiscoveredGateway, taken: ReadonlySet<string>): string {
  const plain = (text: string) =>
    text
      .toLowerCase()
      .replace(/\.service$/, '')
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-+|-+$/g, '')
      .slice(0, 40);
  const name = plain(gateway.name);
  const user = gateway.user === 'root' ? '' : plain(gateway.user);
  const base = (COMMON_NAMES.includes(name) && user) || name || user || 'assistant';
  for (let number = 1; ; number += 1) {
    const id = number === 1 ? base : `${base}-${number}`;
    if (!taken.has(id)) return id;
  }
}

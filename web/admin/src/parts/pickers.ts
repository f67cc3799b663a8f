// Searches behind the fields in which one chooses a user or an instance.
import { unwrap } from '@tidepool/shared/api/envelope';
import type { Found } from '@tidepool/shared/ui/combobox';
import { api } from '../api';
import type { Instance } from '../records';
import { runsAsText } from './runs-as';

const MOST = 8;

export async function findUsers(q: string): Promise<Found[]> {
  const query = { q: q || undefined, status: 'active' as const, page: 1, page_size: MOST };
  const { list } = await unwrap(api.GET('/users', { params: { query } }));
  return list.map((user) => ({ value: user.id, label: user.email, hint: user.instance_name ?? user.name }));
}

/** Instances that nobody has, and that a pool may hold. */
export async function findFreeInstances(q: string): Promise<Found[]> {
  const list = await unassigned(q, true);
  return list.map((one) => ({ value: one.id, label: one.name, hint: place(one) }));
}

/** Instances that whoever may assign any can give to somebody: also those that have no user of their own, which say so. */
export async function findUnassignedInstances(
  q: string,
  t: Parameters<typeof runsAsText>[1],
): Promise<Found[]> {
  const list = await unassigned(q);
  return list.map((one) => ({
    value: one.id,
    label: one.name,
    hint: [place(one), runsAsText(one, t)].filter(Boolean).join(' · '),
  }));
}

async function unassigned(q: string, offered?: boolean): Promise<Instance[]> {
  const query = { q: q || undefined, assigned: false, pooled: false, offered, page: 1, page_size: MOST };
  return (await unwrap(api.GET('/instances', { params: { query } }))).list;
}

const place = (one: Instance) => `${one.id} · ${one.server_name}`;

export async function findInstances(q: string): Promise<Found[]> {
  const query = { q: q || undefined, page: 1, page_size: MOST };
  const { list } = await unwrap(api.GET('/instances', { params: { query } }));
  return list.map((one) => ({ value: one.id, label: one.name, hint: place(one) }));
}

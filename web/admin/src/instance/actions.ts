// What can be asked of an instance, one call each; pages and batches share them.
import { unwrap } from '@tidepool/shared/api/envelope';
import type { TaskType } from '@tidepool/shared/api/registry.gen';
import { api } from '../api';
import type { ModelWish } from '../server/model-choice';

export const restart = (id: string) =>
  unwrap(api.POST('/instances/{id}/restart', { params: { path: { id } } }));

/** What needs a restart waits for one, unless it may be restarted. */
export const reconcile = (id: string, mayRestart: boolean) =>
  unwrap(api.POST('/instances/{id}/reconcile', { params: { path: { id } }, body: { restart: mayRestart } }));

export const hold = (id: string, until: string, reason: string) =>
  unwrap(api.PUT('/instances/{id}/hold', { params: { path: { id } }, body: { until, reason } }));

export const endHold = (id: string) =>
  unwrap(api.DELETE('/instances/{id}/hold', { params: { path: { id } } }));

export const upgrade = (id: string, version: string) =>
  unwrap(
    api.POST('/instances/{id}/upgrade', {
      params: { path: { id } },
      body: { version: version || undefined },
    }),
  );

export const enterCell = (id: string) =>
  unwrap(api.POST('/instances/{id}/cell/enter', { params: { path: { id } } }));

/** All of them or none, so many at most. */
export const CELLS_AT_ONCE = 200;
export const enterCells = (ids: string[]) =>
  unwrap(api.POST('/cells/enter', { body: { instance_ids: ids } }));

export const leaveCell = (id: string) =>
  unwrap(api.POST('/instances/{id}/cell/leave', { params: { path: { id } } }));

/** `keepsLlm` says whether it keeps its own model provider; as it is if null. */
export const moveIntoCell = (id: string, keepsLlm: boolean | null) =>
  unwrap(
    api.POST('/instances/{id}/move-into-cell', { params: { path: { id } }, body: { keeps_llm: keepsLlm } }),
  );

export const moveBack = (id: string) =>
  unwrap(api.POST('/instances/{id}/move-back', { params: { path: { id } } }));

/** Looks on its server for the gateway of an instance that is on none yet. */
export const findOnServer = (id: string, { keepsLlm, restart }: ModelWish) =>
  unwrap(
    api.POST('/assistant-instances/{id}/adopt', {
      params: { path: { id } },
      body: { keeps_llm: keepsLlm, restart },
    }),
  );

/** A task that needs no more than the instance's id. */
export const addTask = (type: TaskType, id: string) =>
  unwrap(
    api.POST('/tasks', { body: { type, payload: { instance_id: id } as object as Record<string, never> } }),
  );

export const syncModels = (ids: string[]) =>
  unwrap(api.POST('/models/sync', { body: { instance_ids: ids } }));

/** Takes the instance back when `userId` is null. */
export const assign = (id: string, userId: string | null) =>
  unwrap(api.PATCH('/instances/{id}/assign', { params: { path: { id } }, body: { user_id: userId } }));

export const remove = (id: string) =>
  unwrap(api.DELETE('/assistant-instances/{id}', { params: { path: { id } } }));

/** The instance with its token masked: the whole one enters the page only when somebody asks for it. */
export const readDetail = (id: string) =>
  unwrap(api.GET('/instances/{id}', { params: { path: { id }, query: { secrets: 'masked' } } }));

/** The whole token; the server records who asked. */
export async function readToken(id: string): Promise<string> {
  return (await unwrap(api.GET('/instances/{id}', { params: { path: { id } } }))).gateway_token;
}

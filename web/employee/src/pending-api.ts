// Endpoints of the contract that the generated types do not name yet, in the same form: when the snapshot has them, an
// entry goes from here and its callers use `api`. A server without them answers 404, which callers take as "not offered".
import { ApiError } from '@tidepool/shared/api/envelope';
import type { Client } from 'openapi-fetch';
import { api } from './api';

interface Answer<Data> {
  200: { content: { 'application/json': { code: string; data: Data; msg: string } } };
}
interface Get<Data, Query = never, Path = never> {
  get: { parameters: { query?: Query; path: Path }; responses: Answer<Data> };
}
interface Post<Data, Body = never, Path = never> {
  post: {
    parameters: { path: Path };
    requestBody: { content: { 'application/json': Body } };
    responses: Answer<Data>;
  };
}

export interface SavedMessage {
  instance_id: string;
  role: 'user' | 'assistant';
  content: string;
  tokens: number;
  /** Makes a repeat harmless. */
  client_id: string;
  session_key?: string;
}

export interface HistoryMessage {
  id: string | number;
  instance_id: string;
  role: 'user' | 'assistant';
  content: string;
  tokens: number;
  created_at: string;
}

export interface HistoryQuery {
  instance_id?: string;
  session_key?: string;
  q?: string;
  page?: number;
  size?: number;
  before?: string;
}

export interface BotStatus {
  configured: boolean;
  platform: string;
  bot_username: string;
  is_active: boolean | number;
  mode: string;
  webhook_url: string;
  pending_update_count: number | null;
  last_error: string | null;
}

export interface Repair {
  id: string | number;
  rule: string;
  action: string;
  result: string;
  created_at: string;
}

interface ById {
  id: string;
}

interface PendingPaths {
  '/me/chat/save': Post<null, SavedMessage>;
  '/me/chat/history': Get<
    { messages: HistoryMessage[]; total: number; page: number; size: number },
    HistoryQuery
  >;
  '/me/instances/{id}/ws-ticket': Post<{ ticket: string; expires_at: string }, object, ById>;
  '/me/instances/{id}/embed-ticket': Post<{ url: string }, object, ById>;
  '/me/instances/{id}/configure-bot': Post<unknown, { bot_token: string }, ById>;
  '/me/instances/{id}/bot-status': Get<BotStatus, never, ById>;
  '/me/instances/{id}/repairs': Get<{ list: Repair[]; total: number }, { limit?: number }, ById>;
}

export const pending = api as unknown as Client<PendingPaths>;

/** The server does not have this endpoint (yet), as opposed to any other failure of it. */
export function notOffered(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || error.status === 405);
}

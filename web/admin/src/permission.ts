// What administrators may do, by the names that GET /auth/me lists. A test compares them with the server's own table.

export const PERMISSIONS = [
  'account.own',
  'fleet.read',
  'people.read',
  'usage.read',
  'audit.read',
  'instances.logs',
  'instances.secrets',
  'people.manage',
  'pools.manage',
  'marketplace.manage',
  'instances.manage',
  'instances.place',
  'instances.assign_unisolated',
  'cells.open',
  'servers.manage',
  'tasks.manage',
  'jobs.run',
  'jobs.pause',
  'alerts.acknowledge',
  'alerts.rules',
  'keys.manage',
  'keys.free',
  'models.manage',
  'models.prices',
  'admins.manage',
] as const;

export type Permission = (typeof PERMISSIONS)[number];

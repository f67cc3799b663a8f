// Short names for the records of the administration API.
import type { components } from '@tidepool/shared/api/admin.gen';

type Schemas = components['schemas'];

export type Admin = Schemas['AdminItem'];
export type Adoption = Schemas['Adoption'];
export type AdoptionPreview = Schemas['AdoptionPreview'];
export type Alert = Schemas['AlertItem'];
export type AlertRule = Schemas['AlertRuleItem'];
export type AuditEntry = Schemas['AuditEntry'];
export type CellDetail = Schemas['CellDetail'];
export type CellOpening = Schemas['CellOpening'];
export type ChatBinding = Schemas['ChatBindingItem'];
export type Claim = Schemas['ClaimItem'];
/** A place where two configurations differ. The values are JSON, which the API's document cannot say. */
export interface ConfigChange {
  path: string;
  is: unknown;
  should: unknown;
}
export type Container = Schemas['ContainerItem'];
export type DiscoveredGateway = Schemas['DiscoveredGateway'];
export type Entry = Schemas['EntryItem'];
export type ForeignSetting = Schemas['ForeignSetting'];
export type GuardianEvent = Schemas['GuardianEvent'];
export type GuardianStats = Schemas['GuardianStats'];
export type Health = Schemas['Health'];
export type Heartbeat = Schemas['Heartbeat'];
export type HeldLimits = Schemas['HeldLimits'];
export type ImportLine = Schemas['ImportLine'];
export type ImportResult = Schemas['ImportResult'];
export type Instance = Schemas['InstanceItem'];
export type InstanceDetail = Schemas['InstanceDetail'];
export type InstanceHold = Schemas['InstanceHold'];
export type InstanceState = Schemas['InstanceState'];
export type ItemType = Schemas['ItemType'];
export type Job = Schemas['JobItem'];
export type JobRun = Schemas['JobRunItem'];
export type JournalLine = Schemas['JournalLine'];
export type Key = Schemas['KeyItem'];
export type Level = Schemas['Level'];
export type LimitValues = Schemas['LimitValues'];
export type ListedItem = Schemas['ListedItem'];
export type MadeInstance = Schemas['MadeInstance'];
export type MadeKey = Schemas['MadeKey'];
export type PendingKey = Schemas['PendingKey'];
export type Model = Schemas['ModelItem'];
export type Provider = Schemas['ProviderItem'];
export type ProviderKey = Schemas['ProviderKeyItem'];
export type ProviderPreset = Schemas['ProviderPreset'];
export type PastConfig = Schemas['PastConfig'];
export type PlaceFound = Schemas['PlaceFound'];
export type PlannedRepair = Schemas['PlannedRepair'];
export type Profession = Schemas['ProfessionItem'];
export type Repair = Schemas['RepairItem'];
export type RequestDetail = Schemas['RequestDetail'];
export type Role = Schemas['Role'];
export type Runner = Schemas['Runner'];
export type Server = Schemas['ServerItem'];
export type ServerStats = Schemas['ServerStats'];
export type StateField = Schemas['StateField'];
export type Task = Schemas['TaskItem'];
export type TaskStatus = Schemas['TaskStatus'];
export type TestStep = Schemas['TestStep'];
export type User = Schemas['UserItem'];
export type WholeItem = Schemas['WholeItem'];

export const ROLES = ['super_admin', 'admin', 'operator', 'auditor'] as const satisfies readonly Role[];
export const HEALTHS = ['healthy', 'unhealthy', 'key_invalid', 'rate_limited', 'unknown'] as const;
export const LEVELS = ['INFO', 'WARN', 'ERROR'] as const;
export const TASK_STATUSES = ['pending', 'processing', 'done', 'failed', 'dead'] as const;
export const ITEM_TYPES = ['skill', 'role_pack', 'config'] as const;
export const ENTRY_STATUSES = ['idle', 'allocated', 'maintenance'] as const;

/** What the address says, when it is one of the values; nothing otherwise. */
export function oneOf<Value extends string>(
  value: string | undefined,
  values: readonly Value[],
): Value | undefined {
  return values.find((one) => one === value);
}

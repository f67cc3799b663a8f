// The numbers of the overview, from the lists and statistics that the console has anyway.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { api } from '../api';
import { useMay } from '../me';
import { HEALTHS, type Health } from '../records';

/** A page as short as can be: only its total is wanted. */
const COUNT = { page: 1, page_size: 1 };

export function useHealthCounts() {
  return useQuery({
    queryKey: ['instances', 'counts'],
    queryFn: async () => {
      const totals = await Promise.all(
        HEALTHS.map(async (health_status) => {
          const query = { ...COUNT, health_status };
          return [health_status, (await unwrap(api.GET('/instances', { params: { query } }))).total] as const;
        }),
      );
      return Object.fromEntries(totals) as Record<Health, number>;
    },
  });
}

export function useFreeInstances() {
  return useQuery({
    queryKey: ['instances', 'free'],
    queryFn: async () =>
      (
        await unwrap(
          api.GET('/instances', { params: { query: { ...COUNT, assigned: false, pooled: false } } }),
        )
      ).total,
  });
}

export function useEmployeeCounts() {
  return useQuery({
    queryKey: ['users', 'counts'],
    enabled: useMay('people.read'),
    queryFn: async () => {
      const [all, active] = await Promise.all([
        unwrap(api.GET('/users', { params: { query: COUNT } })),
        unwrap(api.GET('/users', { params: { query: { ...COUNT, status: 'active' } } })),
      ]);
      return { all: all.total, active: active.total };
    },
  });
}

export function useServerList() {
  return useQuery({
    queryKey: ['servers', 'all'],
    queryFn: () => unwrap(api.GET('/servers', { params: { query: { page: 1, page_size: 200 } } })),
  });
}

export function useStats(
  groupBy: 'model' | 'instance' | 'date' | 'provider' | 'user' | 'department',
  days: number,
) {
  return useQuery({
    queryKey: ['usage', 'stats', groupBy, days],
    enabled: useMay('usage.read'),
    queryFn: () => unwrap(api.GET('/llm-stats', { params: { query: { group_by: groupBy, days } } })),
  });
}

export function useTaskCounts() {
  return useQuery({
    queryKey: ['tasks', 'counts'],
    queryFn: async () => (await unwrap(api.GET('/task-queue', { params: { query: COUNT } }))).counts,
  });
}

export function useProfessionStock() {
  return useQuery({
    queryKey: ['pool', 'stock'],
    queryFn: () =>
      unwrap(api.GET('/professions', { params: { query: { is_active: 1, page: 1, page_size: 200 } } })),
  });
}

export function useLastSelfHeal() {
  return useQuery({
    queryKey: ['jobs', 'self-heal'],
    queryFn: async () => {
      const query = { job_name: 'llm_self_heal', limit: 1 };
      return (await unwrap(api.GET('/job-runs', { params: { query } }))).list[0] ?? null;
    },
  });
}

interface Ready {
  database: string;
  gateway: { status: string; detail?: string };
  log: { status: string; detail?: string };
}

/** What the process says of itself and of what it depends on; it lives beside the API, not below it. */
export function useReady() {
  return useQuery({
    queryKey: ['ready'],
    queryFn: async () => {
      const response = await fetch(new URL('readyz', document.baseURI));
      return ((await response.json()) as { data: Ready }).data;
    },
  });
}

/** The days from a date's key to today, oldest first, with zeros where nothing was. */
export function lastDays(days: number, today = new Date()): string[] {
  return Array.from({ length: days }, (_, index) => {
    const date = new Date(today.getFullYear(), today.getMonth(), today.getDate() - (days - 1 - index));
    const two = (value: number) => String(value).padStart(2, '0');
    return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  });
}

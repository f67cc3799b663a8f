// What runs on a server, how full it is, and the next free port.
import { Meter } from '@tidepool/shared/ui/meter';
import { Card } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { Link } from 'wouter';
import { useFormat } from '../format';
import { useMay } from '../me';
import { useText } from '../messages';
import { HealthStatus } from '../parts/health';
import type { Instance, ServerStats } from '../records';

/** The first port that instances get, and the distance between them. */
const FIRST_PORT = 18_789;
const PORT_STEP = 120;

/** Ports nearer than this to another's are refused. */
const SPACING = 10;
/** A server may have thousands; the list of instances shows them all. */
const SHOWN = 24;

function nextPort(instances: readonly Instance[]): number {
  let port = FIRST_PORT;
  for (const taken of instances.map((one) => one.gateway_port).sort((a, b) => a - b)) {
    if (taken <= port - SPACING) continue;
    while (Math.abs(taken - port) < SPACING) port += PORT_STEP;
  }
  return port;
}

export function Capacity({ instances, stats }: { instances: readonly Instance[]; stats: ServerStats }) {
  const { t, number } = useText();
  const format = useFormat();
  const mayAdd = useMay('instances.manage');
  const meters = [
    { label: t('servers.cpu'), value: stats.cpu_percent },
    { label: t('servers.memory'), value: stats.memory_percent },
    { label: t('servers.disk'), value: stats.disk_percent },
  ];
  return (
    <Card title={t('capacity.title', { count: number(instances.length) })}>
      <div className="mb-5 grid gap-x-8 gap-y-4 sm:grid-cols-3">
        {meters.map(({ label, value }) => (
          <div key={label}>
            <p className="mb-1 flex justify-between text-sm">
              <span className="text-muted">{label}</span>
              <span className="font-medium tabular-nums">
                {value == null ? t('capacity.unknown') : format.percent(value)}
              </span>
            </p>
            {value != null && <Meter label={label} value={value} max={100} text={format.percent(value)} />}
          </div>
        ))}
      </div>
      <p className="mb-3 text-sm text-muted">{t('capacity.port', { port: nextPort(instances) })}</p>
      {instances.length === 0 ? (
        <EmptyState title={t('capacity.none')}>
          {mayAdd && (
            <Link href="/instances?new=1" className="rounded font-medium text-accent hover:underline">
              {t('instances.add')}
            </Link>
          )}
        </EmptyState>
      ) : (
        <ul className="grid gap-x-6 sm:grid-cols-2">
          {instances.slice(0, SHOWN).map((one) => (
            <li key={one.id} className="border-t border-line">
              <Link
                href={`/instances?open=${encodeURIComponent(one.id)}`}
                className="flex min-h-10 items-center gap-3 text-sm -outline-offset-2 hover:text-accent"
              >
                <span className="min-w-0 flex-1 truncate font-medium">{one.name}</span>
                <span className="text-muted tabular-nums">:{one.gateway_port}</span>
                <HealthStatus health={one.health_status} />
              </Link>
            </li>
          ))}
        </ul>
      )}
      {instances[0] && instances.length > SHOWN && (
        <Link
          href={`/instances?server_id=${encodeURIComponent(instances[0].server_id)}`}
          className="mt-3 inline-block rounded text-sm font-medium text-accent hover:underline"
        >
          {t('overview.more')}
        </Link>
      )}
    </Card>
  );
}

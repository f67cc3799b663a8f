// Whether our sums, the log's rows and the gateway's own count agree, day by day.
import { useQuery } from '@tanstack/react-query';
import { unwrap } from '@tidepool/shared/api/envelope';
import { Status } from '@tidepool/shared/ui/badge';
import { Panel } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { api } from '../api';
import { useFormat } from '../format';
import { useText } from '../messages';

/** The gateway counts in units; so many are a dollar. */
const UNITS = 500_000;
const SHOWN = 31;

/** How each column stands; a phone has room for the gap and the verdict. */
const COLUMNS = {
  date: 'text-start',
  summed: 'hidden text-end sm:table-cell',
  logged: 'hidden text-end sm:table-cell',
  gap: 'text-end',
  verdict: 'text-start',
} as const;
type Column = keyof typeof COLUMNS;

export function SpendDays() {
  const { t } = useText();
  const format = useFormat();
  const days = useQuery({
    queryKey: ['usage', 'spend-days'],
    queryFn: () => unwrap(api.GET('/spend-days', { params: { query: { page: 1, page_size: SHOWN } } })),
  });
  const money = (units: number | null | undefined) =>
    units == null ? (
      <span className="text-muted">{t('spend.unknown')}</span>
    ) : (
      format.fineMoney(units / UNITS)
    );
  return (
    <Panel
      title={t('spend.title')}
      query={days}
      empty={{
        when: ({ list }) => list.length === 0,
        show: <EmptyState title={t('spend.none')}>{t('spend.noneText')}</EmptyState>,
      }}
    >
      {({ list }) => (
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard.
        <div role="group" aria-label={t('spend.title')} tabIndex={0} className="max-h-96 overflow-auto">
          <table className="w-full text-sm tabular-nums">
            <thead className="text-muted">
              <tr>
                {(Object.keys(COLUMNS) as Column[]).map((column) => (
                  <th
                    key={column}
                    scope="col"
                    className={`py-1.5 pe-4 align-bottom font-medium ${COLUMNS[column]}`}
                  >
                    {t(`spend.${column}`)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody className="divide-y divide-line">
              {list.map((one) => (
                <tr key={one.date}>
                  <th scope="row" className="py-1.5 pe-4 text-start font-normal whitespace-nowrap">
                    {format.day(one.date)}
                  </th>
                  <td className={`pe-4 ${COLUMNS.summed}`}>{money(one.summed)}</td>
                  <td className={`pe-4 ${COLUMNS.logged}`}>{money(one.logged)}</td>
                  <td className={`pe-4 ${COLUMNS.gap}`}>{money(one.balance_gap)}</td>
                  <td className="whitespace-nowrap">
                    {one.drift == null ? (
                      <Status tone="none">{t('spend.unknown')}</Status>
                    ) : (
                      <Status tone={one.drift === 0 ? 'good' : 'bad'}>
                        {one.drift === 0
                          ? t('spend.agree')
                          : t('spend.drift', { amount: format.fineMoney(one.drift / UNITS) })}
                      </Status>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

// The console's first page: how everything is, right now.
import { Page } from '@tidepool/shared/shell/page';
import { Chart } from '@tidepool/shared/ui/chart/chart';
import { Panel } from '@tidepool/shared/ui/panel';
import { EmptyState } from '@tidepool/shared/ui/states';
import { useFormat } from '../format';
import { useMe, useRights, useRoleName } from '../me';
import { useText } from '../messages';
import {
  EmployeesCard,
  More,
  PoolCard,
  ProvidersCard,
  SelfHealCard,
  TasksCard,
  TodayCard,
} from '../overview/cards';
import { FirstRun } from '../overview/first-run';
import { Fleet } from '../overview/fleet';
import { lastDays, useStats } from '../overview/queries';

export default function Overview() {
  const { t } = useText();
  const me = useMe();
  const roleName = useRoleName();
  const { mayNot } = useRights();
  return (
    <Page
      wide
      title={t('nav.home')}
      heading={t('nav.overview')}
      // Its line is there from the beginning, so that nothing below moves.
      lead={me.data ? t('overview.lead', { email: me.data.email, role: roleName(me.data.role) }) : '\u00a0'}
    >
      <FirstRun />
      <div className="grid items-start gap-4 lg:grid-cols-3">
        <div className="grid min-w-0 gap-4 lg:col-span-2">
          <Fleet />
          {!mayNot('usage.read') && <SpendChart />}
          <PoolCard />
        </div>
        <div className="grid min-w-0 gap-4">
          {!mayNot('usage.read') && <TodayCard />}
          {!mayNot('people.read') && <EmployeesCard />}
          <TasksCard />
          <SelfHealCard />
          {!mayNot('usage.read') && <ProvidersCard />}
        </div>
      </div>
    </Page>
  );
}

const DAYS = 30;
const CHART_HEIGHT = 180;

function SpendChart() {
  const { t } = useText();
  const format = useFormat();
  const stats = useStats('date', DAYS);
  return (
    <Panel
      title={t('overview.spend')}
      query={stats}
      minHeight={CHART_HEIGHT}
      action={<More href="/usage" />}
      empty={{
        when: ({ stats: rows }) => rows.length === 0,
        show: <EmptyState title={t('overview.noSpend')}>{t('overview.noSpendText')}</EmptyState>,
      }}
    >
      {({ stats: rows }) => {
        const byDay = new Map(rows.map((row) => [row.key, row.cost_usd]));
        const days = lastDays(DAYS);
        return (
          <Chart
            label={t('overview.spend')}
            kind="bar"
            height={CHART_HEIGHT}
            points={days.map((day) => ({ label: format.day(day) }))}
            series={[
              { id: 'cost', label: t('overview.cost'), values: days.map((day) => byDay.get(day) ?? 0) },
            ]}
            format={format.money}
          />
        );
      }}
    </Panel>
  );
}

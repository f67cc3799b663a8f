// Professions, the pool of instances kept ready for them, and who has one now.
import { Page } from '@tidepool/shared/shell/page';
import { useAddressValue } from '@tidepool/shared/table/table-state';
import { Tabs } from '@tidepool/shared/ui/tabs';
import { useText } from '../messages';
import { ClaimsTable } from '../profession/claims';
import { PoolTable } from '../profession/pool';
import { ProfessionTable } from '../profession/table';
import { oneOf } from '../records';

const TABS = ['professions', 'pool', 'claims'] as const;
const BODIES = { professions: ProfessionTable, pool: PoolTable, claims: ClaimsTable };

export default function Professions() {
  const { t } = useText();
  const [wanted, setTab] = useAddressValue('tab');
  const tab = oneOf(wanted ?? undefined, TABS) ?? 'professions';
  const Body = BODIES[tab];
  return (
    <Page wide title={t('nav.professions')}>
      <Tabs
        label={t('nav.professions')}
        tabs={TABS.map((value) => ({ value, label: t(`professions.tab.${value}`) }))}
        value={tab}
        onChange={setTab}
      >
        {(bar, content) => (
          <>
            {bar}
            <div className="mt-4">{content(<Body />)}</div>
          </>
        )}
      </Tabs>
    </Page>
  );
}

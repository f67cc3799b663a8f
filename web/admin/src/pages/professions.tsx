// Professions, the pool of instances kept ready for them, and who has one now.
import { lazyPart } from '@tidepool/shared/lazy-part';
import { Page } from '@tidepool/shared/shell/page';
import { useAddressValue } from '@tidepool/shared/table/table-state';
import { Tabs } from '@tidepool/shared/ui/tabs';
import { Suspense } from 'react';
import { useRights } from '../me';
import { useText } from '../messages';
import { Allowed } from '../parts/allowed';
import { ProfessionTable } from '../profession/table';
import { oneOf } from '../records';

// Loaded when its tab is opened: a page's first load has a limit.
const PoolTable = lazyPart(async () => ({ default: (await import('../profession/pool')).PoolTable }));
const ClaimsTable = lazyPart(async () => ({ default: (await import('../profession/claims')).ClaimsTable }));

const TABS = ['professions', 'pool', 'claims'] as const;
const BODIES = { professions: ProfessionTable, pool: PoolTable, claims: ClaimsTable };

export default function Professions() {
  const { t } = useText();
  const [wanted, setTab] = useAddressValue('tab');
  const tab = oneOf(wanted ?? undefined, TABS) ?? 'professions';
  const Body = BODIES[tab];
  const { mayNot } = useRights();
  // One that the address names stays, and says why it is empty.
  const tabs = TABS.filter((value) => value === 'professions' || value === tab || !mayNot('people.read'));
  return (
    <Page wide title={t('nav.professions')}>
      <Tabs
        label={t('nav.professions')}
        tabs={tabs.map((value) => ({ value, label: t(`professions.tab.${value}`) }))}
        value={tab}
        onChange={setTab}
      >
        {(bar, content) => (
          <>
            {bar}
            <div className="mt-4">
              {content(
                <Suspense fallback={null}>
                  {tab === 'professions' ? (
                    <Body />
                  ) : (
                    <Allowed to="people.read">
                      <Body />
                    </Allowed>
                  )}
                </Suspense>,
              )}
            </div>
          </>
        )}
      </Tabs>
    </Page>
  );
}

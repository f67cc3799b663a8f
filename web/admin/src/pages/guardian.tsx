// The guardian: its dimensions and their events, the repairs that were made, and the alerts that were raised.
import { Page } from '@tidepool/shared/shell/page';
import { useAddressValue } from '@tidepool/shared/table/table-state';
import { Tabs } from '@tidepool/shared/ui/tabs';
import { Alerts } from '../guardian/alerts';
import { Dimensions } from '../guardian/dimensions';
import { Repairs } from '../guardian/repairs';
import { useText } from '../messages';
import { oneOf } from '../records';

const TABS = ['dimensions', 'repairs', 'alerts'] as const;
const BODIES = { dimensions: Dimensions, repairs: Repairs, alerts: Alerts };

export default function Guardian() {
  const { t } = useText();
  const [wanted, setTab] = useAddressValue('tab');
  const tab = oneOf(wanted ?? undefined, TABS) ?? 'dimensions';
  const Body = BODIES[tab];
  return (
    <Page wide title={t('nav.guardian')} lead={t('guardian.lead')}>
      <Tabs
        label={t('nav.guardian')}
        tabs={TABS.map((value) => ({ value, label: t(`guardian.tab.${value}`) }))}
        value={tab}
        onChange={setTab}
      >
        {(bar, content) => (
          <>
            {bar}
            <div className="mt-5">{content(<Body />)}</div>
          </>
        )}
      </Tabs>
    </Page>
  );
}

// The sub keys with which assistants reach models, and the models themselves.
import { Page } from '@tidepool/shared/shell/page';
import { useAddressValue } from '@tidepool/shared/table/table-state';
import { Tabs } from '@tidepool/shared/ui/tabs';
import { KeyTable } from '../keys/keys';
import { ModelTable } from '../keys/models';
import { useText } from '../messages';
import { oneOf } from '../records';

const TABS = ['keys', 'models'] as const;

export default function Keys() {
  const { t } = useText();
  const [wanted, setTab] = useAddressValue('tab');
  const tab = oneOf(wanted ?? undefined, TABS) ?? 'keys';
  return (
    <Page wide title={t('nav.keys')}>
      <Tabs
        label={t('nav.keys')}
        tabs={TABS.map((value) => ({ value, label: t(`keys.tab.${value}`) }))}
        value={tab}
        onChange={setTab}
      >
        {(bar, content) => (
          <>
            {bar}
            <div className="mt-4">{content(tab === 'keys' ? <KeyTable /> : <ModelTable />)}</div>
          </>
        )}
      </Tabs>
    </Page>
  );
}

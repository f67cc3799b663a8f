// The sub keys with which assistants reach models, the models themselves, and the providers that answer for them.
import { lazyPart } from '@tidepool/shared/lazy-part';
import { Page } from '@tidepool/shared/shell/page';
import { useAddressValue } from '@tidepool/shared/table/table-state';
import { Skeleton } from '@tidepool/shared/ui/states';
import { Tabs } from '@tidepool/shared/ui/tabs';
import { Suspense } from 'react';
import { KeyTable } from '../keys/keys';
import { ModelTable } from '../keys/models';
import { useRights } from '../me';
import { useText } from '../messages';
import { Allowed } from '../parts/allowed';
import { oneOf } from '../records';

const ProviderList = lazyPart(async () => ({ default: (await import('../keys/providers')).ProviderList }));

const TABS = ['keys', 'models', 'providers'] as const;

export default function Keys() {
  const { t } = useText();
  const [wanted, setTab] = useAddressValue('tab');
  const { mayNot } = useRights();
  const tab = oneOf(wanted ?? undefined, TABS) ?? (mayNot('usage.read') ? 'models' : 'keys');
  // One that the address names stays, and says why it is empty.
  const tabs = TABS.filter((value) => value !== 'keys' || value === tab || !mayNot('usage.read'));
  return (
    <Page wide title={t('nav.keys')}>
      <Tabs
        label={t('nav.keys')}
        tabs={tabs.map((value) => ({ value, label: t(`keys.tab.${value}`) }))}
        value={tab}
        onChange={setTab}
      >
        {(bar, content) => (
          <>
            {bar}
            <div className="mt-4">
              {content(
                tab === 'models' ? (
                  <ModelTable />
                ) : tab === 'providers' ? (
                  <Suspense fallback={<Skeleton lines={4} />}>
                    <ProviderList />
                  </Suspense>
                ) : (
                  <Allowed to="usage.read">
                    <KeyTable />
                  </Allowed>
                ),
              )}
            </div>
          </>
        )}
      </Tabs>
    </Page>
  );
}

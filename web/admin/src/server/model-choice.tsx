// Whether an assistant that somebody else made keeps its own model provider, and whether what a change needs is restarted at once.
import { Segmented } from '@tidepool/shared/ui/segmented';
import { CheckField } from '@tidepool/shared/ui/text-area';
import { useAdoptText } from './adopt-texts';

export interface ModelWish {
  keepsLlm: boolean;
  restart: boolean;
}

interface ModelChoiceProps {
  value: ModelWish;
  /** What it means to keep its own, where something is written all the same. */
  ownHint?: string;
  /** Not where it is restarted in any case. */
  asksRestart?: boolean;
  onChange: (value: ModelWish) => void;
}

export function ModelChoice({ value, ownHint, asksRestart = true, onChange }: ModelChoiceProps) {
  const { t } = useAdoptText();
  const { keepsLlm, restart } = value;
  return (
    <div className="space-y-2">
      <Segmented
        legend={t('adopt.llm')}
        value={keepsLlm ? 'own' : 'ours'}
        options={[
          { value: 'own', label: t('adopt.llmOwn') },
          { value: 'ours', label: t('adopt.llmOurs') },
        ]}
        // Nothing is written to one that keeps its own, so nothing needs a restart.
        onChange={(next) => onChange({ keepsLlm: next === 'own', restart: next === 'ours' && restart })}
      />
      <p className="text-sm text-muted">
        {keepsLlm ? (ownHint ?? t('adopt.llmOwnHint')) : t('adopt.llmOursHint')}
      </p>
      {asksRestart && !keepsLlm && (
        <CheckField
          label={t('adopt.restart')}
          hint={t('adopt.restartHint')}
          checked={restart}
          onChange={(event) => onChange({ keepsLlm, restart: event.target.checked })}
        />
      )}
    </div>
  );
}

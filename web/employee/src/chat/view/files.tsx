// Files beside a prompt: each with its name, its type and its size; those that are not sent yet can be taken away.
import { IconButton } from '@tidepool/shared/ui/icon-button';
import { File as FileIcon, Image as ImageIcon, X } from 'lucide-react';
import { useText } from '../../messages';
import { fileSize } from '../attach';
import type { FileFacts } from '../engine/types';
import { mediaTypeOf } from '../media-type';

interface FilesProps {
  files: readonly FileFacts[];
  onRemove?: (index: number) => void;
}

export function Files({ files, onRemove }: FilesProps) {
  const { t, locale } = useText();
  return (
    <ul aria-label={t('files.label')} className="flex min-w-0 flex-wrap gap-1.5">
      {files.map((file, index) => {
        const type = file.type || mediaTypeOf(file.name);
        const Icon = type.startsWith('image/') ? ImageIcon : FileIcon;
        const facts = [type || t('files.unknownType'), fileSize(file.size, locale)].join(' · ');
        return (
          <li
            key={`${index} ${file.name}`}
            className="flex max-w-full items-center gap-2 rounded-lg border border-line bg-surface py-1 ps-2.5 pe-1 text-sm text-ink"
          >
            <Icon className="size-4 shrink-0 text-muted" aria-hidden="true" />
            <span className="min-w-0 pe-1.5">
              <span className="block max-w-60 truncate" title={file.name}>
                {file.name}
              </span>
              <span className="block max-w-60 truncate text-xs text-muted tabular-nums">{facts}</span>
            </span>
            {onRemove && (
              <IconButton
                icon={X}
                label={t('files.remove', { name: file.name })}
                onClick={() => onRemove(index)}
              />
            )}
          </li>
        );
      })}
    </ul>
  );
}

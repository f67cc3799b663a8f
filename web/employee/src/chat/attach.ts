// Files that go along with a prompt: whether the assistant takes them, and what is in them.
import type { Attachment, AttachmentPolicy } from './engine/types';
import { mediaTypeOf } from './media-type';

export interface Refused {
  name: string;
  /** The limit that it exceeds, in bytes. */
  limit: number;
  /** It is the sum that is too much, not this one alone. */
  together: boolean;
}

interface Sized {
  name: string;
  type: string;
  size: number;
}

/** Room for the words beside the files, and for what wraps them. */
const RESERVED = 256 * 1024;

/** Base64 takes four bytes for three. */
const sent = (size: number) => Math.ceil(size / 3) * 4;

/** Of `more`, what can be sent beside `chosen`, and why the rest cannot. */
export function fitting<File extends Sized>(
  chosen: readonly Sized[],
  more: readonly File[],
  policy: AttachmentPolicy,
): { taken: File[]; refused: Refused[] } {
  const taken: File[] = [];
  const refused: Refused[] = [];
  const room = Math.max(0, policy.maxPayload - RESERVED);
  let used = chosen.reduce((sum, file) => sum + sent(file.size), 0);
  for (const file of more) {
    const limit = file.type.startsWith('image/') ? policy.maxImageBytes : policy.maxBytes;
    if (file.size > limit) refused.push({ name: file.name, limit, together: false });
    else if (used + sent(file.size) > room)
      refused.push({ name: file.name, limit: Math.floor((room / 4) * 3), together: true });
    else {
      used += sent(file.size);
      taken.push(file);
    }
  }
  return { taken, refused };
}

/** Throws when a file has gone since it was chosen. */
export async function contentOf(file: File): Promise<Attachment> {
  const { name, size } = file;
  const type = file.type || mediaTypeOf(name);
  const bytes = new Uint8Array(await file.arrayBuffer());
  const parts: string[] = [];
  // In slices that are whole in base64 and few enough to be arguments.
  for (let at = 0; at < bytes.length; at += 0x6000)
    parts.push(btoa(String.fromCharCode(...bytes.subarray(at, at + 0x6000))));
  return { name, type, size, content: parts.join('') };
}

export function fileSize(bytes: number, locale: string): string {
  const [amount, unit] =
    bytes < 1000
      ? [bytes, 'byte']
      : bytes < 1_000_000
        ? [bytes / 1000, 'kilobyte']
        : [bytes / 1_000_000, 'megabyte'];
  return new Intl.NumberFormat(locale, {
    style: 'unit',
    unit,
    unitDisplay: unit === 'byte' ? 'long' : 'short',
    maximumFractionDigits: amount < 100 && unit !== 'byte' ? 1 : 0,
  }).format(amount);
}

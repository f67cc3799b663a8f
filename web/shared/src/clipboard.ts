// Copies a text. The clipboard is refused on pages that are not served over TLS; then the old way is taken.
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'sr-only';
    // An open dialog takes the focus back from whatever is outside of it.
    (document.activeElement?.closest('[role=dialog]') ?? document.body).append(area);
    area.select();
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way there.
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}
